package controlplane_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/webhooks"
	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/fakes/inbox"
	"github.com/pgherd/pgherd/ports"
)

// expectSealed checks that the store has the secret in no shape but the sealed one, bound to its endpoint.
func (w *world) expectSealed(made webhooks.SecretEndpoint) {
	w.t.Helper()
	stored := w.endpoint(made)
	if text := fmt.Sprintf("%+v %s", stored, stored.SealedSecret); strings.Contains(text, made.Secret) {
		w.t.Error("the store shows the secret")
	}
	plain := must(w.ports.Secrets.Open(stored.SealedSecret, webhook.SecretContext(stored.ID)))(w.t)
	equal(w.t, "the sealed secret is the one that was shown", string(plain) == made.Secret, true)
	if _, err := w.ports.Secrets.Open(stored.SealedSecret, webhook.SecretContext("another")); err == nil {
		w.t.Error("the secret opens for another endpoint")
	}
}

// At most 50 are enabled: creating and enabling again both need room, rotating an enabled one does not.
func TestRoomForWebhooks(t *testing.T) {
	w := newWorld(t)
	var all []webhooks.SecretEndpoint
	for range webhook.MaxEnabled {
		all = append(all, w.hook(receiver))
	}
	refused(t, errOf(w.Webhooks.Create(w.ctx, w.caller, receiver, nil)), fault.InvalidWebhookEndpoint)
	must(w.Webhooks.Rotate(w.ctx, w.reachedHook(all[0])))(t)
	ok(t, w.Webhooks.Disable(w.ctx, w.reachedHook(all[0])))
	w.hook(receiver)
	refused(t, errOf(w.Webhooks.Rotate(w.ctx, w.reachedHook(all[0]))), fault.InvalidWebhookEndpoint)
	equal(t, "status", w.endpoint(all[0]).Status(), webhook.Disabled)
	_, _, other := w.newAccount("other@example.org", account.Pro)
	must(w.Webhooks.Create(w.ctx, other, receiver, nil))(t)
}

// HTTP asks for a full-account key before the use cases do.
func TestWebhooksNeedAFullAccountKey(t *testing.T) {
	w := newWorld(t)
	made := w.hook(receiver)
	db := w.made("shop").Record.ID
	_, text, err := w.Operator.CreateKey(w.ctx, keys.NewKey{
		AccountID: w.account.ID, Label: "narrow", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{db},
	})
	ok(t, err)
	narrow := w.admit(text)
	refused(t, errOf(w.Webhooks.Reach(w.ctx, narrow, made.Endpoint.ID)), fault.KeyScopeDenied)
	_, _, err = w.Webhooks.List(w.ctx, narrow, ports.Page{})
	refused(t, err, fault.KeyScopeDenied)
	refused(t, errOf(w.Webhooks.Create(w.ctx, narrow, receiver, &db)), fault.KeyScopeDenied)
}

// An endpoint is for a database of one's own, and what is refused shows nowhere.
func TestWebhooksOfOthersDatabases(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	_, _, stranger := w.newAccount("stranger@example.org", account.Pro)
	for _, foreign := range []id.DatabaseID{db, "99999999-8888-4777-8666-555555555555"} {
		refused(t, errOf(w.Webhooks.Create(w.ctx, stranger, receiver, &foreign)), fault.InvalidWebhookEndpoint)
	}
	list, _, err := w.Webhooks.List(w.ctx, stranger, ports.Page{})
	ok(t, err)
	equal(t, "endpoints", len(list), 0)
	equal(t, "entries in the log", len(w.hookLog(""))+len(w.hookLog(db)), 0)
}

// What waits for a disabled endpoint is given up; a rotation brings the endpoint back, and not what was given up.
func TestDisableWebhook(t *testing.T) {
	w := newWorld(t)
	made := w.hook(receiver)
	r := w.reached(w.made("shop").Record.ID)
	w.fires(r)
	must(w.Dispatcher.FanOut(w.ctx))(t)
	w.clock.Advance(time.Second)
	ok(t, w.Webhooks.Disable(w.ctx, w.reachedHook(made)))
	at := w.clock.Now()
	w.clock.Advance(time.Second)
	ok(t, w.Webhooks.Disable(w.ctx, w.reachedHook(made))) // once more changes nothing
	if e := w.endpoint(made); e.DisabledAt == nil || !e.DisabledAt.Equal(at) || !e.UpdatedAt.Equal(at) {
		t.Errorf("%+v", e)
	}
	w.fires(r)
	w.clock.Advance(time.Hour)
	w.dispatch(w.ControlPlane)
	refused(t, errOf(w.Webhooks.Test(w.ctx, w.reachedHook(made))), fault.InvalidWebhookEndpoint)

	w.expectSealed(must(w.Webhooks.Rotate(w.ctx, w.reachedHook(made)))(t))
	w.dispatch(w.ControlPlane)
	equal(t, "requests", len(w.inbox.Requests("")), 0)
	w.fires(r)
	w.dispatch(w.ControlPlane)
	equal(t, "requests", len(w.inbox.Requests("")), 1)
}

func TestWebhooksInTheActivityLog(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	for _, of := range [][]id.DatabaseID{nil, {db}} {
		made := w.hook(receiver, of...)
		rotated := must(w.Webhooks.Rotate(w.ctx, w.reachedHook(made)))(t)
		ok(t, w.Webhooks.Disable(w.ctx, w.reachedHook(made)))
		ok(t, w.Webhooks.Disable(w.ctx, w.reachedHook(made)))
		log := w.hookLog(append(of, "")[0])
		var actions []audit.Action
		for _, e := range log {
			actions = append(actions, e.Action)
			text := string(must(json.Marshal(e))(t))
			for _, secret := range []string{"hidden", "/in", made.Secret, rotated.Secret} {
				equal(t, "an entry shows "+secret, strings.Contains(text, secret), false)
			}
			if e.Actor != w.caller.Actor() || e.AccountID != w.account.ID || e.Details["host"] != "hooks.example.com" ||
				e.Details["webhookId"] != string(made.Endpoint.ID) {
				t.Errorf("%+v", e)
			}
		}
		slices.Sort(actions)
		if want := []audit.Action{audit.WebhookCreated, audit.WebhookDisabled, audit.WebhookRotated}; !slices.Equal(actions, want) {
			t.Error(actions)
		}
	}
}

func TestAttemptsAndRedeliver(t *testing.T) {
	w := newWorld(t)
	made, bystander := w.hook(receiver), w.hook("https://other.example.com/")
	w.inbox.On(receiver, func(_ context.Context, n int) webhook.Outcome {
		return map[bool]webhook.Outcome{true: {StatusCode: 503, Error: "busy"}, false: {StatusCode: 200}}[n == 1]
	})
	w.fires(w.reached(w.made("shop").Record.ID))
	w.dispatch(w.ControlPlane)
	w.clock.Advance(time.Minute)
	w.dispatch(w.ControlPlane)
	list := w.attempts(made)
	if len(list) != 2 || list[0].Number != 2 || list[0].StatusCode != 200 || list[0].Error != "" || list[0].NextAttempt != nil ||
		list[1].Number != 1 || list[1].StatusCode != 503 || list[1].Error != "busy" || list[1].NextAttempt == nil ||
		list[0].Event != "backup.canceled" || list[0].Status != webhook.Delivered {
		t.Fatalf("%+v", list)
	}
	d := list[0].DeliveryID
	for _, missing := range []id.DeliveryID{w.attempts(bystander)[0].DeliveryID, "99999999-8888-4777-8666-555555555555"} {
		refused(t, errOf(w.Webhooks.Redeliver(w.ctx, w.reachedHook(made), missing)), fault.WebhookNotFound)
	}
	again := must(w.Webhooks.Redeliver(w.ctx, w.reachedHook(made), d))(t)
	equal(t, "status", again.Status, webhook.Pending)
	w.dispatch(w.ControlPlane)
	got := w.inbox.Requests(receiver)
	if len(got) != 3 || got[2].EventID != string(d) || !bytes.Equal(got[2].Body, got[0].Body) {
		t.Fatalf("%+v", got)
	}
	equal(t, "at the bystander", len(w.inbox.Requests("https://other.example.com/")), 1)
	ok(t, w.Webhooks.Disable(w.ctx, w.reachedHook(made)))
	refused(t, errOf(w.Webhooks.Redeliver(w.ctx, w.reachedHook(made), d)), fault.InvalidWebhookEndpoint)
}

func operationEvent(r inbox.Request) (p event.Payload, err error) {
	err = json.Unmarshal(r.Body, &p)
	return p, err
}

// A store that fails is the route's own code, and not a missing endpoint.
func TestWebhookChangesThatFail(t *testing.T) {
	w := newWorld(t)
	made := w.hook(receiver)
	r := w.reachedHook(made)
	gone, cancel := context.WithCancel(w.ctx)
	cancel()
	refused(t, errOf(w.Webhooks.Rotate(gone, r)), fault.WebhookRotationFailed)
	refused(t, w.Webhooks.Disable(gone, r), fault.WebhookUpdateFailed)
	_, err := w.Webhooks.Redeliver(gone, r, "99999999-8888-4777-8666-555555555555")
	if !errors.Is(err, context.Canceled) || fault.Has(err, fault.WebhookNotFound) {
		t.Error(err)
	}
	w.expectSealed(made)
}
