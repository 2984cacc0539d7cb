package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/citokens"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/fakes/fakeissuer"
	"github.com/pgherd/pgherd/ports"
)

// exchanging is two processes on one metadata database, and a namespace that trusts a pipeline.
type exchanging struct {
	*testing.T
	store     ports.Store
	processes [2]*controlplane.ControlPlane
	issuers   *fakeissuer.Issuers
	clock     *fakeclock.Clock
	namespace id.NamespaceID
	trust     id.TrustID
}

func newExchanging(t *testing.T) *exchanging {
	t.Helper()
	db := migrated(t)
	w := &exchanging{T: t, issuers: fakeissuer.New(), clock: fakeclock.New()}
	entropy, box := fakeentropy.New(), fakebox.New()
	for i := range w.processes {
		opened := open(t, db)
		w.store = opened
		w.processes[i] = check.Must(controlplane.New(controlplane.Ports{
			Store: opened, Admissions: opened, Fleet: fakeagent.New(w.clock), Clock: w.clock, Entropy: entropy, Secrets: box,
			Tokens: w.issuers,
		}, controlplane.Config{Instance: fmt.Sprint("process ", i)}))(t)
	}
	op := w.processes[0].Operator
	owner, _, err := op.CreateAccount(t.Context(), operator.NewAccount{Email: "ada@example.org", Name: "Ada", Plan: account.Pro})
	check.NoError(t, err)
	w.namespace = check.Must(op.CreateNamespace(t.Context(), owner.ID, "main"))(t).ID
	w.trust = check.Must(op.AddTrust(t.Context(), keys.NewTrust{
		NamespaceID: w.namespace, Issuer: "https://ci.example.org", Audience: "pgherd", Subject: "repo:acme/shop:**",
	}))(t).ID
	return w
}

func (w *exchanging) token(name string) string {
	return w.issuers.Token(citoken.Claims{
		Issuer: "https://ci.example.org", Subject: "repo:acme/shop:pull_request", Audience: []string{"pgherd"}, ID: name,
		ExpiresAt: w.clock.Now().Add(time.Minute),
	})
}

func (w *exchanging) exchange(process int, token string) error {
	_, err := w.processes[process].CITokens.Exchange(w.Context(), citokens.Presented{
		NamespaceID: string(w.namespace), Token: token,
	})
	return err
}

// working are the keys of the namespace that are not revoked.
func (w *exchanging) working() (n int) {
	w.Helper()
	for _, k := range check.Must(w.processes[0].Operator.CIKeys(w.Context(), w.namespace))(w) {
		if k.What.RevokedAt == nil {
			n++
		}
	}
	return n
}

func TestATokenMakesOneKeyHoweverManyPresentIt(t *testing.T) {
	w := newExchanging(t)
	token := w.token("one")
	var all []func() error
	for i := range 50 {
		all = append(all, func() error { return w.exchange(i%2, token) })
	}
	won := 0
	for _, err := range atOnce(all...) {
		switch {
		case err == nil:
			won++
		case !fault.Has(err, fault.Unauthorized):
			t.Error(err)
		}
	}
	if won != 1 || w.working() != 1 {
		t.Errorf("%d got a key, and there are %d", won, w.working())
	}
}

// However an exchange and the end of its trust come together, no key is left that works.
func TestNoKeyOutlivesItsTrust(t *testing.T) {
	for what, ends := range map[string]func(w *exchanging) error{
		"trust":     func(w *exchanging) error { return w.processes[1].Operator.RemoveTrust(w.Context(), w.trust) },
		"namespace": func(w *exchanging) error { return w.processes[1].Operator.RevokeNamespace(w.Context(), w.namespace) },
	} {
		w := newExchanging(t)
		all := []func() error{func() error { return ends(w) }}
		for i := range 12 {
			all = append(all, func() error { return w.exchange(i%2, w.token(fmt.Sprint(i))) })
		}
		for i, err := range atOnce(all...) {
			if err != nil && (i == 0 || !fault.Has(err, fault.Unauthorized)) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if n := w.working(); n != 0 {
			t.Errorf("%s: %d keys work after its end", what, n)
		}
	}
}

// Two who take the last place of a namespace: one gets it.
func TestTheLastPlaceIsTakenOnce(t *testing.T) {
	w := newExchanging(t)
	now := w.clock.Now()
	until := now.Add(time.Hour)
	check.NoError(t, w.store.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		n, err := tx.Namespaces().Lock(ctx, w.namespace)
		if err != nil {
			return err
		}
		owner, err := tx.Accounts().Get(ctx, n.AccountID)
		for i := range citoken.MaxLive - 1 {
			if err != nil {
				return err
			}
			err = tx.Keys().Add(ctx, account.Key{
				ID: id.KeyID(fmt.Sprintf("%08d", i)), Kind: account.CIKey, AccountID: n.AccountID, UserID: owner.OwnerID,
				NamespaceID: n.ID, Label: "x", Scope: account.SelectedDatabases, Hash: make([]byte, 32), CreatedAt: now, ExpiresAt: &until,
				TrustID: w.trust,
			}, nil)
		}
		return err
	}))
	won := 0
	for _, err := range atOnce(
		func() error { return w.exchange(0, w.token("one")) }, func() error { return w.exchange(1, w.token("two")) },
	) {
		switch {
		case err == nil:
			won++
		case !fault.Has(err, fault.RateLimited):
			t.Error(err)
		}
	}
	if won != 1 || w.working() != citoken.MaxLive {
		t.Errorf("%d got the last place, and %d keys work", won, w.working())
	}
}
