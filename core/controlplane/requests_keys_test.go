package controlplane_test

import (
	"fmt"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/citokens"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/database"
)

// ofKeys are those of an account and of its pipelines, and the leases of previews.
var ofKeys = []wish{
	{
		name: "key",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			_, text, err := cp.Operator.CreateKey(w.ctx, keys.NewKey{
				AccountID: w.account.ID, Label: "deploy", Scope: account.FullAccount,
			})
			w.holds = []string{text}
			return err
		},
		sees: (*world).admitsHeld, // one that nobody has heard of stays in the list
	},
	{
		name: "key, bound", prepare: func(w *world) { w.holds = []string{w.key} },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			until := keys.Bounds{Expires: &account.Expiry{After: 30 * time.Second}}
			return errOf(cp.Operator.BindKey(w.ctx, w.caller.Key.ID, until))
		},
		sees: (*world).admitsHeld,
	},
	{
		name: "end of a key", prepare: func(w *world) { w.holds = []string{w.key} },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Operator.RevokeKey(w.ctx, w.caller.Key.ID)
		},
		sees: (*world).admitsHeld,
	},
	{
		name: "namespace",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.CreateNamespace(w.ctx, w.account.ID, "web"))
		},
		sees: (*world).haveNamespaces,
	},
	{
		name: "end of a namespace", prepare: (*world).hasNamespace,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Operator.RevokeNamespace(w.ctx, w.namespace().ID)
		},
		sees: (*world).admitsHeld,
	},
	{
		name: "key of a namespace", prepare: (*world).hasNamespace,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			_, text, err := cp.Operator.CreateCIKey(w.ctx, w.namespace().ID)
			w.holds = []string{text}
			return err
		},
		sees: (*world).admitsHeld,
	},
	{
		name: "end of a key of a namespace", prepare: (*world).hasNamespace,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			held := must(w.Operator.CIKeys(w.ctx, w.namespace().ID))(w.t)
			return cp.Operator.RevokeCIKey(w.ctx, held[0].What.ID)
		},
		sees: (*world).admitsHeld,
	},
	{
		name: "trust", prepare: (*world).hasNamespace,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.AddTrust(w.ctx, w.newTrust()))
		},
		sees: (*world).haveTrusts,
	},
	{
		name: "end of a trust", prepare: (*world).hasTrust,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			for _, t := range must(w.Operator.Trusts(w.ctx, w.namespace().ID))(w.t) {
				return cp.Operator.RemoveTrust(w.ctx, t.ID)
			}
			return nil
		},
		sees: (*world).haveTrusts,
	},
	{
		name: "trust, by a key", prepare: (*world).hasNamespace,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			r := must(w.Pipelines.Reach(w.ctx, w.caller, w.namespace().ID))(w.t)
			return errOf(cp.Pipelines.AddTrust(w.ctx, r, ciIssuer, ciAudience, ciSubject))
		},
		sees: (*world).haveTrusts,
	},
	{
		name: "end of a trust, by a key", prepare: (*world).hasTrust,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			r := must(w.Pipelines.Reach(w.ctx, w.caller, w.namespace().ID))(w.t)
			for _, t := range must(w.Pipelines.Trusts(w.ctx, r))(w.t) {
				return cp.Pipelines.RemoveTrust(w.ctx, r, t.ID)
			}
			return nil
		},
		sees: (*world).haveTrusts,
	},
	{
		name: "exchange of a token", prepare: (*world).hasTrust,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			pipeline := &trusting{world: w, tokens: len(w.holds)} // each time with another token, as a pipeline asks for it
			w.holds = append(w.holds, "")
			made, err := cp.CITokens.Exchange(w.ctx, citokens.Presented{
				NamespaceID: string(w.namespace().ID), Token: pipeline.token(), RequestID: "request",
			})
			w.holds[0] = made.Text
			return err
		},
		sees: (*world).admitsHeld,
	},
	{
		name: "backups of a preview", prepare: (*world).hasPreview,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			ci := w.pipelines()
			r := must(w.Previews.ReachRef(w.ctx, ci, "main"))(w.t)
			return errOf(cp.Previews.SetSchedule(w.ctx, r, database.Daily))
		},
		sees: func(w *world) string { return fmt.Sprint(must(w.find(w.pipelines(), "main"))(w.t).Schedule) },
	},
}

func (w *world) namespace() account.Namespace {
	w.t.Helper()
	return must(w.Operator.Namespaces(w.ctx, w.account.ID))(w.t)[0]
}

// hasNamespace gives the account a namespace, and somebody a key of it.
func (w *world) hasNamespace() {
	w.t.Helper()
	n := must(w.Operator.CreateNamespace(w.ctx, w.account.ID, "pipeline"))(w.t)
	_, text, err := w.Operator.CreateCIKey(w.ctx, n.ID)
	ok(w.t, err)
	w.holds = []string{text}
}

func (w *world) newTrust() keys.NewTrust {
	return keys.NewTrust{NamespaceID: w.namespace().ID, Issuer: ciIssuer, Audience: ciAudience, Subject: ciSubject}
}

func (w *world) hasTrust() {
	w.hasNamespace()
	must(w.Operator.AddTrust(w.ctx, w.newTrust()))(w.t)
}

func (w *world) hasPreview() { w.opened(w.pipeline(w.account, "web"), ofRef("main")) }

// admitsHeld is what becomes of a request with the key that somebody holds.
func (w *world) admitsHeld() string {
	w.t.Helper()
	_, err := w.Access.Admit(w.ctx, attempt(w.holds[0]))
	return fmt.Sprint(err)
}

func (w *world) haveNamespaces() (names string) {
	w.t.Helper()
	for _, n := range must(w.Operator.Namespaces(w.ctx, w.account.ID))(w.t) {
		names += n.Name + ", "
	}
	return names
}

func (w *world) haveTrusts() string {
	w.t.Helper()
	return fmt.Sprint(len(must(w.Operator.Trusts(w.ctx, w.namespace().ID))(w.t)))
}
