package controlplane_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operations"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/network"
	"github.com/pgherd/pgherd/ports"
)

// Every cause of a 401 answers with the same bytes.
func TestUnauthorizedIsAlwaysTheSame(t *testing.T) {
	w := newWorld(t)
	unknown, _ := account.NewKey(account.AccountKey, strings.Repeat("z", account.KeyCharacters))
	otherSecret := withSecret(w.key, strings.Repeat("z", 32))
	otherKind, _ := account.NewKey(account.CIKey, w.key[4:12]+w.key[13:45])
	_, revoked, _ := w.newAccount("revoked@example.org", account.Pro)
	ok(t, w.Operator.RevokeKey(w.ctx, id.KeyID(revoked[4:12])))
	_, replaced, _ := w.newAccount("replaced@example.org", account.Pro)
	_, fresh, err := w.Operator.ReplaceKey(w.ctx, id.KeyID(replaced[4:12]), keys.Bounds{})
	ok(t, err)
	w.admit(fresh)
	_, expired, _ := w.newAccount("expired@example.org", account.Pro)
	must(w.Operator.BindKey(w.ctx, id.KeyID(expired[4:12]), keys.Bounds{Expires: &account.Expiry{After: time.Hour}}))(t)
	_, foreign, _ := w.newAccount("foreign@example.org", account.Pro)
	office := network.List("192.0.2.0/24")
	must(w.Operator.BindKey(w.ctx, id.KeyID(foreign[4:12]), keys.Bounds{Networks: &office}))(t)
	w.clock.Advance(time.Hour)
	for name, key := range map[string]string{
		"none": "", "malformed": "pgh_x", "bad checksum": w.key[:len(w.key)-1] + "!", "unknown": unknown,
		"another secret": otherSecret, "another kind": otherKind, "revoked": revoked, "replaced": replaced,
		"expired": expired, "from elsewhere": foreign,
	} {
		admission, err := w.Access.Admit(w.ctx, attempt(key))
		if err == nil || err.Error() != account.ErrUnauthorized().Error() || admission.Caller.Known() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnauthorizedAttempts(t *testing.T) {
	w := newWorld(t)
	for range 30 {
		refused(t, errOf(w.Access.Admit(w.ctx, attempt("wrong"))), fault.Unauthorized)
	}
	for i := range 2 { // the first from the store, the second from memory
		turned, err := w.Access.Admit(w.ctx, attempt("wrong"))
		refused(t, err, fault.RateLimited)
		equal(t, "remaining", turned.Rate.Remaining, 0)
		equal(t, "limit", turned.Rate.Limit, 30)
		equal(t, "reset, until the bucket is full", turned.Rate.Reset, time.Minute-time.Duration(i)*time.Second)
		equal(t, "retry after", turned.Rate.RetryAfter, 2*time.Second-time.Duration(i)*time.Second)
		if i == 0 {
			w.clock.Advance(time.Second)
		}
	}
	w.admit(w.key)
	other := attempt("wrong")
	other.Client = netip.MustParseAddr("203.0.113.8")
	refused(t, errOf(w.Access.Admit(w.ctx, other)), fault.Unauthorized)
	w.clock.Advance(2 * time.Second)
	refused(t, errOf(w.Access.Admit(w.ctx, attempt("wrong"))), fault.Unauthorized)
}

// TestKeysFromAnAddressThatIsShutOut presents keys from an address that has used up its attempts: which are looked up?
func TestKeysFromAnAddressThatIsShutOut(t *testing.T) {
	unknown, _ := account.NewKey(account.AccountKey, strings.Repeat("z", account.KeyCharacters))
	for name, c := range map[string]struct {
		key    func(w *world) string
		after  time.Duration // since its last use
		revoke bool
		want   []fault.Code // of two attempts
		looked int64
	}{
		"used here":              {func(w *world) string { return w.key }, time.Hour, false, []fault.Code{"", ""}, 2},
		"used here long ago":     {func(w *world) string { return w.key }, time.Hour + time.Second, false, tooMany, 0},
		"used here, and revoked": {func(w *world) string { return w.key }, time.Minute, true, tooMany, 1},
		"never used here":        {(*world).fresh, 0, false, tooMany, 0},
		"unknown":                {func(*world) string { return unknown }, 0, false, tooMany, 0},
		"another secret of a used one": {
			func(w *world) string { return withSecret(w.key, strings.Repeat("z", 32)) }, 0, false, tooMany, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			counting := &asked{Admissions: w.store}
			w.ports.Admissions = counting
			w.ControlPlane = w.process(quick())
			w.admit(w.key)
			key := c.key(w)
			if c.revoke {
				ok(t, w.Operator.RevokeKey(w.ctx, w.caller.Key.ID))
			}
			w.clock.Advance(c.after)
			for range 31 {
				_, _ = w.Access.Admit(w.ctx, attempt("wrong"))
			}
			before := counting.finds.Load() + counting.leases.Load()
			for _, code := range c.want {
				if _, err := w.Access.Admit(w.ctx, attempt(key)); (code == "" && err != nil) || (code != "" && !fault.Has(err, code)) {
					t.Errorf("got %v, want %q", err, code)
				}
			}
			equal(t, "keys looked up", counting.finds.Load()+counting.leases.Load()-before, c.looked)
		})
	}
}

var tooMany = []fault.Code{fault.RateLimited, fault.RateLimited}

// fresh is a valid key that was never used.
func (w *world) fresh() string {
	_, key, err := w.Operator.CreateKey(w.ctx, keys.NewKey{
		AccountID: w.account.ID, Label: "fresh", Scope: account.FullAccount,
	})
	ok(w.t, err)
	return key
}

func withSecret(key, secret string) string {
	text, _ := account.NewKey(account.AccountKey, key[4:12]+secret)
	return text
}

func TestLastUse(t *testing.T) {
	w := newWorld(t)
	w.clock.Advance(time.Hour)
	w.admit(w.key)
	ok(t, w.Access.FlushUsed(w.ctx))
	list := must(w.Operator.Keys(w.ctx, w.account.ID))(t)
	equal(t, "keys", len(list), 1)
	key := list[0].What
	if key.LastUsedAt == nil || !key.LastUsedAt.Equal(w.clock.Now()) || key.Hash != nil || w.caller.Key.Hash != nil {
		t.Errorf("%+v", list)
	}
	equal(t, "who holds it", list[0].Person.ID, w.account.OwnerID)
}

// A Caller and a Reached that nobody made reach nothing.
func TestZeroReached(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	refused(t, errOf(w.Access.Reach(w.ctx, access.Caller{}, db, account.See)), fault.DatabaseNotFound)
	refused(t, errOf(w.Databases.Create(w.ctx, access.Caller{}, request("other"))), fault.KeyScopeDenied)
	refused(t, errOf(w.Backups.Start(w.ctx, access.Reached{})), fault.DatabaseNotFound)
	refused(t, w.Databases.SetEnvironment(w.ctx, access.Reached{}, new(database.Other)), fault.DatabaseNotFound)
	_, _, err := w.Activity.List(w.ctx, access.Reached{}, ports.Page{})
	refused(t, err, fault.DatabaseNotFound)
	refused(t, errOf(w.Operations.Cancel(w.ctx, operations.Reached{})), fault.DatabaseNotFound)
}

func TestOperator(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	_, _, err := w.Operator.CreateAccount(w.ctx, operator.NewAccount{Email: " OWNER@example.org", Name: "x", Plan: account.Pro})
	refused(t, err, fault.ValidationError)
	for _, email := range []string{"\u017fam@example.org", "\u212aim@example.org"} {
		_, _, err = w.Operator.CreateAccount(w.ctx, operator.NewAccount{Email: email, Name: "x", Plan: account.Pro})
		refused(t, err, fault.ValidationError)
	}
	_, err = w.Operator.AccountNamed(w.ctx, "account", "owner@exam\u0440le.org")
	refused(t, err, fault.ValidationError)
	named, err := w.Operator.AccountNamed(w.ctx, "account", "Owner@Example.org")
	ok(t, err)
	if named != w.account.ID {
		t.Error(named)
	}
	for name, n := range map[string]keys.NewKey{
		"no label":           {AccountID: w.account.ID, Scope: account.FullAccount},
		"no scope":           {AccountID: w.account.ID, Label: "x"},
		"unknown scope":      {AccountID: w.account.ID, Label: "x", Scope: "everything"},
		"selected, nothing":  {AccountID: w.account.ID, Label: "x", Scope: account.SelectedDatabases},
		"full, and selected": {AccountID: w.account.ID, Label: "x", Scope: account.FullAccount, Databases: []id.DatabaseID{db}},
		"no such account":    {AccountID: "none", Label: "x", Scope: account.FullAccount},
		"no such database": {
			AccountID: w.account.ID, Label: "x", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{"none"},
		},
	} {
		if _, text, err := w.Operator.CreateKey(w.ctx, n); !fault.Has(err, fault.ValidationError) || text != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused(t, w.Operator.RevokeKey(w.ctx, "nothere0"), fault.ValidationError)
	_, _, err = w.Operator.CreateCIKey(w.ctx, "none")
	refused(t, err, fault.ValidationError)
	refused(t, w.Operator.SetFeature(w.ctx, "flying", true), fault.ValidationError)
	refused(t, w.Operator.Enroll(w.ctx, db, "flying"), fault.ValidationError)
	ok(t, w.Operator.Enroll(w.ctx, db, "all"))
	ok(t, w.Operator.Unenroll(w.ctx, db, "clone"))
	ok(t, w.store.View(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		granted, err := tx.Switches().Grants(ctx, db)
		equal(t, "enrolments", fmt.Sprint(granted.Enrolments), "[delete recover restore restore-upload]")
		return err
	}))
	refused(t, errOf(w.Operator.Operation(w.ctx, "none")), fault.OperationNotFound)
	refused(t, errOf(w.Operator.CancelOperation(w.ctx, "none")), fault.OperationNotFound)
}

// After sealing anew every secret still opens under its context, and none is the bytes that it was.
func TestReseal(t *testing.T) {
	w := newWorld(t)
	first := w.made("shop")
	before := w.sealed()
	changed := must(w.Keyring.Reseal(w.ctx))(t)
	after := w.sealed()
	equal(t, "changed", changed.Changed, 6) // the key of the backups, three logins, a server and its archive
	equal(t, "values", len(after), len(before))
	for ref, v := range after {
		if string(v) == string(before[ref]) {
			t.Errorf("%s is as it was", ref)
		}
	}
	r := keyed("other")
	must(w.Databases.Create(w.ctx, w.caller, r))(t)
	must(w.Keyring.Reseal(w.ctx))(t)
	again := must(w.Databases.Create(w.ctx, w.caller, r))(t)
	equal(t, "logs in after all that", w.logsIn(again) && w.logsIn(first), true)
}

func (w *world) sealed() map[string][]byte {
	w.t.Helper()
	values := map[string][]byte{}
	ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		list, err := tx.SealedValues().Next(ctx, "", 100)
		for _, v := range list {
			values[v.Ref] = v.Sealed
		}
		return err
	}))
	return values
}

func TestPortsAreRequired(t *testing.T) {
	if _, err := controlplane.New(controlplane.Ports{}, controlplane.Config{}); err == nil {
		t.Error("a control plane without ports")
	}
}

// Wrong keys are counted by address: an address that has used its attempts up does not keep a valid key out, nor anybody else.
// An IPv6 host moves about in its /64; an IPv4 address written as IPv6 is the same address.
func TestAddressesThatShareABucket(t *testing.T) {
	for _, pair := range [][2]string{{"2001:db8:1:2::1", "2001:db8:1:2:ffff::9"}, {"203.0.113.7", "::ffff:203.0.113.7"}} {
		w := newWorld(t)
		k := attempt("wrong")
		k.Client = netip.MustParseAddr(pair[0])
		for range 30 {
			refused(t, errOf(w.Access.Admit(w.ctx, k)), fault.Unauthorized)
		}
		k.Client = netip.MustParseAddr(pair[1])
		refused(t, errOf(w.Access.Admit(w.ctx, k)), fault.RateLimited)
	}
}
