package controlplane_test

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/webhooks"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/fakes/inbox"
	"github.com/pgherd/pgherd/ports"
)

const receiver = "https://hooks.example.com/in?token=hidden"

// hook makes an endpoint of the account: for the given database, or for all.
func (w *world) hook(url string, db ...id.DatabaseID) webhooks.SecretEndpoint {
	w.t.Helper()
	var of *id.DatabaseID
	if len(db) > 0 {
		of = &db[0]
	}
	return must(w.Webhooks.Create(w.ctx, w.caller, url, of))(w.t)
}

func (w *world) reachedHook(e webhooks.SecretEndpoint) webhooks.Reached {
	w.t.Helper()
	return must(w.Webhooks.Reach(w.ctx, w.caller, e.Endpoint.ID))(w.t)
}

// endpoint is an endpoint as it is stored.
func (w *world) endpoint(e webhooks.SecretEndpoint) (stored webhook.Endpoint) {
	w.t.Helper()
	ok(w.t, w.store.View(w.ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		stored, err = tx.Webhooks().Get(ctx, w.account.ID, e.Endpoint.ID)
		return err
	}))
	return stored
}

func (w *world) attempts(e webhooks.SecretEndpoint) []ports.WebhookAttempt {
	w.t.Helper()
	list, _, err := w.Webhooks.Attempts(w.ctx, w.reachedHook(e), ports.Page{})
	ok(w.t, err)
	return list
}

// fires has an operation of the database reach a final status: one event.
func (w *world) fires(r access.Reached) operation.Operation {
	w.t.Helper()
	work := must(w.Backups.Start(w.ctx, r))(w.t)
	return must(w.Operations.Cancel(w.ctx, w.reachedOperation(work.ID)))(w.t)
}

// dispatch has a dispatcher do all that can be done now.
func (w *world) dispatch(cp *controlplane.ControlPlane) {
	w.t.Helper()
	for must(cp.Dispatcher.FanOut(w.ctx))(w.t) > 0 {
	}
	for must(cp.Dispatcher.RunNext(w.ctx))(w.t) {
	}
}

// hookLog is what the activity log says about endpoints: of a database, or of none. The oldest comes first.
func (w *world) hookLog(db id.DatabaseID) (entries []audit.Entry) {
	w.t.Helper()
	about := map[audit.Action]bool{audit.WebhookCreated: true, audit.WebhookRotated: true, audit.WebhookDisabled: true}
	for _, e := range w.log(db) {
		if about[e.Action] {
			entries = append([]audit.Entry{e}, entries...)
		}
	}
	return entries
}

func signedBy(t *testing.T, r inbox.Request, secret string, want bool) {
	t.Helper()
	if got := webhook.Verify(secret, r.Timestamp, r.Body, r.Signature); got != want {
		t.Errorf("the request verifies with the secret: %t, want %t", got, want)
	}
}
