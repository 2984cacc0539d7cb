package controlplane_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/network"
	"github.com/pgherd/pgherd/ports"
)

const nobodysTrust = "00000000-0000-4000-8000-000000000000"

// reachedNamespace is the namespace of the world, as its full-account key reaches it.
func (w *trusting) reachedNamespace() keys.ReachedNamespace {
	w.t.Helper()
	return must(w.Pipelines.Reach(w.ctx, w.caller, w.namespace.ID))(w.t)
}

func (w *trusting) adds(r keys.ReachedNamespace, subject string) (citoken.Trust, error) {
	return w.Pipelines.AddTrust(w.ctx, r, ciIssuer, ciAudience, subject)
}

func TestAKeySaysWhomANamespaceTrusts(t *testing.T) {
	w := newTrusting(t)
	r := w.reachedNamespace()
	added := must(w.adds(r, "repo:acme/web:**"))(t)
	w.clock.Advance(time.Second) // so that the log has an order
	equal(t, "trusts", len(must(w.Pipelines.Trusts(w.ctx, r))(t)), 2)
	ok(t, w.Pipelines.RemoveTrust(w.ctx, r, added.ID))
	refused(t, w.Pipelines.RemoveTrust(w.ctx, r, added.ID), fault.TrustNotFound)
	ok(t, w.Pipelines.RemoveTrust(w.ctx, r, w.trust.ID)) // the operator's is one of the namespace, too
	equal(t, "namespaces", must(w.Pipelines.Namespaces(w.ctx, w.caller))(t)[0], w.namespace)

	var done []audit.Action
	for _, e := range must(w.Operator.AccountAudit(w.ctx, w.account.ID, ports.Page{}))(t) {
		if e.What.Actor == access.ActorOf(w.caller.Key) {
			done = append(done, e.What.Action)
			equal(t, "the namespace of the entry", e.What.Details["namespaceId"], string(w.namespace.ID))
		}
	}
	equal(t, "entries that name the key", len(done), 3)
	equal(t, "the first", done[2], audit.CITrustAdded)
	equal(t, "the last", done[0], audit.CITrustRemoved)
}

// A trust makes keys: whoever could add one for others would have theirs.
func TestWhoSaysNotWhomANamespaceTrusts(t *testing.T) {
	w := newTrusting(t)
	made := w.exchanged()
	db := w.made("shop").Record.ID
	_, selected, err := w.Operator.CreateKey(w.ctx, keys.NewKey{
		AccountID: w.account.ID, Label: "one", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{db},
	})
	ok(t, err)
	for what, c := range map[string]access.Caller{
		"nobody": {}, "a key of the namespace": w.admit(made.Text), "a key for a database": w.admit(selected),
	} {
		t.Run(what, func(t *testing.T) {
			refused(t, errOf(w.Pipelines.Reach(w.ctx, c, w.namespace.ID)), fault.KeyScopeDenied)
			refused(t, errOf(w.Pipelines.Namespaces(w.ctx, c)), fault.KeyScopeDenied)
		})
	}
	_, _, stranger := w.newAccount("mallory@example.org", account.Pro)
	theirs := errOf(w.Pipelines.Reach(w.ctx, stranger, w.namespace.ID))
	none := errOf(w.Pipelines.Reach(w.ctx, stranger, nobodysTrust))
	refused(t, theirs, fault.NamespaceNotFound)
	equal(t, "what is said of one of others", theirs.Error(), none.Error())
	equal(t, "namespaces of a stranger", len(must(w.Pipelines.Namespaces(w.ctx, stranger))(t)), 0)

	own := must(w.Operator.CreateNamespace(w.ctx, stranger.Account.ID, "own"))(t)
	r := must(w.Pipelines.Reach(w.ctx, stranger, own.ID))(t)
	theirs, none = w.Pipelines.RemoveTrust(w.ctx, r, w.trust.ID), w.Pipelines.RemoveTrust(w.ctx, r, nobodysTrust)
	refused(t, theirs, fault.TrustNotFound)
	equal(t, "what is said of a trust of others", theirs.Error(), none.Error())
	equal(t, "trusts", len(must(w.Operator.Trusts(w.ctx, w.namespace.ID))(t)), 1)
}

// What ends between the look at a key and the change is asked again in the transaction of the change.
func TestNothingIsTrustedInTheNameOfAKeyThatHasEnded(t *testing.T) {
	for what, c := range map[string]struct {
		end  func(w *trusting) error
		code fault.Code
	}{
		"revoked": {func(w *trusting) error { return w.Operator.RevokeKey(w.ctx, w.caller.Key.ID) }, fault.Unauthorized},
		"replaced": {func(w *trusting) error {
			_, _, err := w.Operator.ReplaceKey(w.ctx, w.caller.Key.ID, keys.Bounds{})
			return err
		}, fault.Unauthorized},
		"expired": {func(w *trusting) error {
			defer w.clock.Advance(time.Hour)
			return errOf(w.Operator.BindKey(w.ctx, w.caller.Key.ID, keys.Bounds{Expires: &account.Expiry{After: time.Minute}}))
		}, fault.Unauthorized},
		"elsewhere": {func(w *trusting) error {
			elsewhere := network.List("198.51.100.0/24")
			return errOf(w.Operator.BindKey(w.ctx, w.caller.Key.ID, keys.Bounds{Networks: &elsewhere}))
		}, fault.Unauthorized},
		"suspended": {func(w *trusting) error {
			return errOf(w.Operator.Suspend(w.ctx, w.account.ID, "unpaid"))
		}, fault.AccountSuspended},
		"on a plan without API": {func(w *trusting) error {
			return errOf(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.Plan = account.Free }))
		}, fault.PlanAPIAccessRequired},
		"of a revoked namespace": {func(w *trusting) error {
			return w.Operator.RevokeNamespace(w.ctx, w.namespace.ID)
		}, fault.ValidationError},
	} {
		t.Run(what, func(t *testing.T) {
			w := newTrusting(t)
			r := w.reachedNamespace()
			ok(t, c.end(w))
			refused(t, errOf(w.adds(r, "repo:evil/shop:**")), c.code)
			for _, left := range must(w.Operator.Trusts(w.ctx, w.namespace.ID))(t) {
				equal(t, "what is trusted", left, w.trust)
			}
		})
	}
}
