package controlplane_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// newExtensionWorld is a world with one database, on a server whose extensions are qualified.
func newExtensionWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.readyForExtensions()
	return w
}

func (w *world) readyForExtensions() {
	w.t.Helper()
	ok(w.t, w.Operator.SetFeature(w.ctx, "extension-catalog", true))
	w.made("shop")
	agent := must(w.fleet.Agent(w.machine))(w.t)
	version := must(ports.Ask(w.ctx, agent, command.Extensions{DatabaseID: w.only().ID}))(w.t).ServerVersion
	ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		for _, name := range extension.Names {
			err = errors.Join(err, tx.Qualifications().Put(ctx, extension.Qualification{
				ServerID: w.machine.ID, Extension: name, Version: name.Version(16), ServerVersion: version, Qualified: true,
			}))
		}
		return err
	}))
}

// forExtensions is the only database as its owner reaches it for its extensions.
func (w *world) forExtensions() access.Reached { return w.reachedForExtensions(w.only().ID) }

func (w *world) reachedForExtensions(db id.DatabaseID) access.Reached {
	w.t.Helper()
	return must(w.Access.Reach(w.ctx, w.caller, db, account.See, rollout.ExtensionCatalog))(w.t)
}

func install(name extension.Name, key idempotency.Key) extension.Request {
	return extension.Request{Extension: name, Change: extension.Install, Key: key}
}

func upgrade(name extension.Name, key idempotency.Key) extension.Request {
	return extension.Request{Extension: name, Change: extension.Upgrade, Key: key}
}

// installing is an installation of citext that is queued.
func (w *world) installing() operation.Operation {
	w.t.Helper()
	return must(w.Extensions.Start(w.ctx, w.forExtensions(), install("citext", "once")))(w.t)
}

// unavailable expects that a request is refused, and that it left nothing.
func (w *world) unavailable(q extension.Request) {
	w.t.Helper()
	before := len(w.activity(w.only().ID))
	refused(w.t, errOf(w.Extensions.Start(w.ctx, w.forExtensions(), q)), fault.ExtensionMutationUnavailable)
	equal(w.t, "lines of the activity log", len(w.activity(w.only().ID)), before)
}

// entry is an extension as the catalog of the only database has it.
func (w *world) entry(name extension.Name) extension.Entry {
	w.t.Helper()
	for _, e := range must(w.Extensions.Catalog(w.ctx, w.forExtensions()))(w.t) {
		if e.Name == name {
			return e
		}
	}
	w.t.Fatalf("the catalog has no %s", name)
	return extension.Entry{}
}

// read is an operation as its status route shows it.
func (w *world) readExtension(op id.OperationID) operation.Operation {
	w.t.Helper()
	return must(w.Extensions.Status(w.ctx, w.forExtensions(), op))(w.t)
}
