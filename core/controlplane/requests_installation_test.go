package controlplane_test

import (
	"context"
	"fmt"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/keyring"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/fakes/memstore"
	"github.com/pgherd/pgherd/ports"
)

var newUser = operator.NewAccount{Email: "eve@example.org", Name: "Eve", Plan: account.Pro}

// ofTheInstallation is what operators do about all of it, and what it sends.
var ofTheInstallation = []wish{
	{
		name: "account",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			_, _, err := cp.Operator.CreateAccount(w.ctx, newUser)
			return err
		},
		sees: func(w *world) string {
			return fmt.Sprint(len(must(w.Operator.Accounts(w.ctx, ports.AccountFilter{}, ports.Page{}))(w.t)))
		},
	},
	{
		name: "enrolment of what comes",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Operator.SetAutoEnroll(w.ctx, w.account.ID, true)
		},
		sees: func(w *world) string {
			return fmt.Sprint(must(w.Operator.AccountDetails(w.ctx, w.account.ID, ports.Page{}))(w.t).AutoEnroll)
		},
	},
	{
		name: "operator",
		act:  func(w *world, cp *controlplane.ControlPlane) error { return cp.Operator.AddOperator(w.ctx, ownerEmail) },
		sees: (*world).haveOperators,
	},
	{
		name: "end of an operator", prepare: func(w *world) { ok(w.t, w.Operator.AddOperator(w.ctx, ownerEmail)) },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Operator.RemoveOperator(w.ctx, ownerEmail)
		},
		sees: (*world).haveOperators,
	},
	{
		name: "order in the console", prepare: func(w *world) {
			w.hasPasskey()
			ok(w.t, w.Operator.AddOperator(w.ctx, ownerEmail))
			asked := must(w.People.BeginPasskeyLogIn(w.ctx, home()))(w.t)
			w.holds = []string{must(w.People.LogInByPasskey(w.ctx, asked.Token, w.phone.Signs(asked.Options), home()))(w.t).Token}
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			me := must(w.crowd().visits(w.holds[0]))(w.t)
			return cp.Console.Change(w.ctx, me, "a new disk", func(
				ctx context.Context, o *operator.Operator, _ operation.Order,
			) error {
				return o.SetMaintenance(ctx, true)
			})
		},
		sees: (*world).haveSwitches,
	},
	{
		name: "key of certificates, replaced", prepare: func(w *world) {
			first := must(w.Operator.CreateCertificateKey(w.ctx))(w.t)
			w.holds = []string{string(first.ID)}
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			_, _, err := cp.Operator.RotateCertificateKey(w.ctx, id.CertificateKeyID(w.holds[0]))
			return err
		},
		sees: func(w *world) string { return fmt.Sprint(len(must(w.Operator.CertificateKeys(w.ctx))(w.t))) },
	},
	{
		name: "host with a ring of keys", alone: true, prepare: (*world).hasRing,
		act: func(w *world, cp *controlplane.ControlPlane) error { return cp.Keyring.Join(w.ctx, "b") },
		sees: func(w *world) string {
			names := map[string]bool{}
			for _, h := range must(w.Keyring.Hosts(w.ctx))(w.t) {
				names[h.Name] = true
			}
			return fmt.Sprint(names)
		},
	},
	{
		name: "key of the ring, staged", alone: true, prepare: (*world).hasRing,
		act:  func(w *world, cp *controlplane.ControlPlane) error { return cp.Keyring.Stage(w.ctx, "2") },
		sees: (*world).haveRing,
	},
	{
		name: "key of the ring, given up", alone: true, prepare: (*world).hasStaged,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Keyring.Unstage(w.ctx))
		},
		sees: (*world).haveRing,
	},
	{
		name: "key of the ring, promoted", alone: true, prepare: (*world).hasStaged,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Keyring.Promote(w.ctx))
		},
		sees: (*world).haveRing,
	},
	{
		name: "keys of the ring, retired", alone: true, prepare: func(w *world) {
			w.hasStaged()
			must(w.Keyring.Promote(w.ctx))(w.t)
			w.clock.Advance(keyring.DefaultSettle)
			ok(w.t, w.Keyring.Refresh(w.ctx))
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Keyring.Prune(w.ctx, keyring.DefaultSettle))
		},
		sees: (*world).haveRing,
	},
	{
		name: "everything, encrypted again",
		act:  func(w *world, cp *controlplane.ControlPlane) error { return errOf(cp.Keyring.Reseal(w.ctx)) },
		sees: func(w *world) string { return fmt.Sprint(w.archiveKey(w.listedServer()) == w.archiveKey(w.machine)) },
	},
	{
		name: "secret of a webhook, replaced", prepare: func(w *world) { w.hook(receiver) },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			made, err := cp.Webhooks.Rotate(w.ctx, must(w.Webhooks.Reach(w.ctx, w.caller, w.hooks()[0].ID))(w.t))
			w.holds = []string{made.Secret}
			return err
		},
		sees: func(w *world) string {
			w.fires(w.reached(w.source()))
			w.dispatch(w.ControlPlane)
			sent := w.inbox.Requests(receiver)
			signedBy(w.t, sent[len(sent)-1], w.holds[0], true)
			return fmt.Sprint(len(w.hooks()), len(sent))
		},
	},
	{
		name: "test of a webhook", prepare: func(w *world) { w.hook(receiver) },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Webhooks.Test(w.ctx, must(w.Webhooks.Reach(w.ctx, w.caller, w.hooks()[0].ID))(w.t)))
		},
		sees: func(w *world) string {
			w.dispatch(w.ControlPlane)
			return fmt.Sprint(len(w.inbox.Requests(receiver)) > 0)
		},
	},
	{
		name: "notice to a person", prepare: func(w *world) {
			w.hasSessions()
			must(w.People.ChangePassword(w.ctx, must(w.crowd().visits(w.holds[0]))(w.t), fresh, ""))(w.t)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error { return errOf(cp.Mails.RunNext(w.ctx)) },
		sees: func(w *world) string {
			w.mails(w.ControlPlane)
			return fmt.Sprint(len(w.mailbox.Mails(ownerEmail)) > 0)
		},
	},
}

func (w *world) haveOperators() string {
	w.t.Helper()
	return fmt.Sprint(len(must(w.Operator.Operators(w.ctx))(w.t)))
}

// hasRing makes it another installation, which has a host with a ring.
func (w *world) hasRing() {
	w.t.Helper()
	ring := fakebox.NewRing("1")
	w.store = memstore.NewRerunning()
	w.ports.Store, w.ports.Admissions, w.ports.Secrets, w.ports.Ring = w.store, w.store, ring, ring
	w.ControlPlane = w.process(w.config)
	ok(w.t, w.Keyring.Join(w.ctx, "a"))
	must(w.Operator.AddServer(w.ctx, newServer("two")))(w.t)
}

func (w *world) hasStaged() {
	w.t.Helper()
	w.hasRing()
	w.ports.Ring.(*fakebox.Ring).Has("1", "2")
	ok(w.t, w.Keyring.Stage(w.ctx, "2"))
	ok(w.t, w.Keyring.Refresh(w.ctx))
}

// haveRing are the keys of the ring, and which of them encrypts what is stored.
func (w *world) haveRing() string {
	w.t.Helper()
	var list []string
	for _, k := range must(w.Keyring.Known(w.ctx))(w.t) {
		list = append(list, fmt.Sprint(k.Fingerprint, " ", k.Status))
	}
	return fmt.Sprint(list, w.ports.Ring.SealedBy(w.listedServer().SealedSecret))
}
