package controlplane_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/network"
	"github.com/pgherd/pgherd/ports"
)

// lent is a database with a backup, and somebody else who is a member of it, with a key for it.
type lent struct {
	reader
	member member.Membership
	key    account.Key
	viewer access.Caller
}

func (w *world) lent() lent {
	w.t.Helper()
	l := lent{reader: w.reader("ada")}
	a, user, err := w.Operator.CreateAccount(w.ctx, operator.NewAccount{Email: "bob@example.org", Name: "Bob", Plan: account.Pro})
	ok(w.t, err)
	l.member = member.Membership{
		ID: "0189abcd-ef01-4234-8567-89abcdef0123", DatabaseID: l.r.Record().ID, UserID: user.ID, Role: account.Viewer,
	}
	l.updates(func(ctx context.Context, m ports.Members) error { return m.Set(ctx, l.member) })
	key, text, err := w.Operator.CreateKey(w.ctx, keys.NewKey{
		AccountID: a.ID, Label: "k", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{l.r.Record().ID},
	})
	ok(w.t, err)
	l.key, l.viewer = key, w.admit(text)
	return l
}

func (l lent) binds(b keys.Bounds) {
	l.w.t.Helper()
	must(l.w.Operator.BindKey(l.w.ctx, l.key.ID, b))(l.w.t)
}

func (l lent) bindsTo(networks network.List) { l.binds(keys.Bounds{Networks: &networks}) }

func (l lent) updates(do func(context.Context, ports.Members) error) {
	l.w.t.Helper()
	ok(l.w.t, l.w.store.Update(l.w.ctx, func(ctx context.Context, tx ports.Tx) error { return do(ctx, tx.Members()) }))
}

// unreachable are admissions whose store does not answer.
type unreachable struct {
	ports.Admissions
	now bool
}

func (u *unreachable) Find(ctx context.Context, key id.KeyID) (ports.Admission, error) {
	if u.now {
		return ports.Admission{}, errors.New("the store does not answer")
	}
	return u.Admissions.Find(ctx, key)
}

// A download that has begun ends within seconds of what allowed it, and of nothing else.
func TestADownloadEndsWithTheRightToIt(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(l lent, store *unreachable)
		ends    bool
	}{
		"membership removed": {func(l lent, _ *unreachable) {
			l.updates(func(ctx context.Context, m ports.Members) error { return m.Remove(ctx, l.member) })
		}, true},
		"key revoked": {func(l lent, _ *unreachable) { ok(l.w.t, l.w.Operator.RevokeKey(l.w.ctx, l.key.ID)) }, true},
		"key replaced": {func(l lent, _ *unreachable) {
			_, _, err := l.w.Operator.ReplaceKey(l.w.ctx, l.key.ID, keys.Bounds{})
			ok(l.w.t, err)
		}, true},
		"key expired": {func(l lent, _ *unreachable) {
			l.binds(keys.Bounds{Expires: &account.Expiry{After: time.Second}})
		}, true},
		"key ends later": {func(l lent, _ *unreachable) {
			l.binds(keys.Bounds{Expires: &account.Expiry{After: 2 * time.Hour}})
		}, false},
		"key lost the network": {func(l lent, _ *unreachable) { l.bindsTo("192.0.2.0/24") }, true},
		"key kept the network": {func(l lent, _ *unreachable) { l.bindsTo("203.0.113.0/24") }, false},
		"role changed": {func(l lent, _ *unreachable) {
			l.member.Role = account.Admin
			l.updates(func(ctx context.Context, m ports.Members) error { return m.Set(ctx, l.member) })
		}, false},
		"store does not answer": {func(_ lent, store *unreachable) { store.now = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			l, store := w.lent(), &unreachable{Admissions: w.ports.Admissions}
			w.ports.Admissions = store
			w.ControlPlane = w.process(quick())
			r := must(w.Access.Reach(w.ctx, l.viewer, l.r.Record().ID, account.See))(t)
			body := must(w.Backups.Open(w.ctx, r, l.name, backup.Beginning{}))(t).File.Body
			defer body.Close()
			read := func() error { return errOf(io.ReadFull(body, make([]byte, 1))) }

			ok(t, read())
			c.happens(l, store)
			w.clock.Advance(5*time.Second - time.Microsecond)
			ok(t, read())
			w.clock.Advance(time.Microsecond)
			if err := read(); c.ends != fault.Has(err, fault.DatabaseNotFound) || !c.ends && err != nil {
				t.Errorf("it goes on with %v", err)
			}
			w.clock.Advance(time.Hour)
			if err := read(); c.ends != (err != nil) || errors.Is(err, io.EOF) {
				t.Errorf("after an hour it goes on with %v", err)
			}
		})
	}
}
