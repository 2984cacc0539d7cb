package crash_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/controlplane/extensions"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/extension"
)

// qualified says of the server what its trials would find out: these cases are about other things.
const qualified = `INSERT INTO extension_qualifications SELECT s.id, 'pg_trgm', '1.6', $1, true, '', now() FROM servers s
	ON CONFLICT DO NOTHING`

// extender is an owner who changes pg_trgm in a database.
type extender struct{ guest }

func newExtender(t *testing.T, w *world, name string) extender {
	t.Helper()
	must(w.meta.ExecContext(soon(t), qualified, column(t, w.server, "SHOW server_version")[0]))(t)
	return extender{newGuest(t, w, name)}
}

// asks asks for a change, always with the same key.
func (e extender) asks(t *testing.T, api *stack.Host, change extension.Change) (wire.ExtensionOperation, error) {
	t.Helper()
	return e.user.at(api).Extensions.Change(soon(t), e.db.ID, wire.ChangeExtension{Extension: "pg_trgm", Kind: change},
		apiclient.IdempotencyKey("once"))
}

// has is the version that stands in the database; empty where there is none.
func (e extender) has(t *testing.T) (version string) {
	t.Helper()
	const query = "SELECT extversion FROM pg_extension WHERE extname = 'pg_trgm'"
	if err := e.conn.QueryRowContext(soon(t), query).Scan(&version); !errors.Is(err, sql.ErrNoRows) {
		noError(t, err)
	}
	return version
}

// ended fails the test unless there is one operation, which ended so, and the same request finds it.
func (e extender) ended(t *testing.T, api *stack.Host, change extension.Change, status, version string) wire.ExtensionOperation {
	t.Helper()
	all := e.operations(t, api)
	if len(all) != 1 || all[0].Type != "extension" || string(all[0].Status) != status {
		t.Fatalf("operations: %+v", all)
	}
	again := must(e.asks(t, api, change))(t)
	if again.ID != all[0].ID || string(again.Status) != status {
		t.Errorf("the same request is now %+v", again)
	}
	if has := e.has(t); has != version {
		t.Errorf("the database has version %q, want %q", has, version)
	}
	return again
}

// extendFlow installs or upgrades an extension, which must come to be, once, whatever happens.
type extendFlow struct {
	change extension.Change
	extender
}

func (f *extendFlow) ready(t *testing.T, w *world) {
	f.extender = newExtender(t, w, "extend")
	if f.change == extension.Upgrade {
		must(f.conn.ExecContext(soon(t), "CREATE EXTENSION pg_trgm VERSION '1.3'"))(t)
	}
}

func (f *extendFlow) act(t *testing.T, _ *world, api *stack.Host) {
	_, err := f.asks(t, api, f.change)
	mayHaveFailed(t, err)
}

func (f *extendFlow) check(t *testing.T, _ *world, api *stack.Host) {
	f.ended(t, api, f.change, "succeeded", "1.6")
}

// blockedFlow asks for an extension whose objects find others in their way. It fails, and changes nothing.
type blockedFlow struct{ extender }

func (f *blockedFlow) ready(t *testing.T, w *world) {
	f.extender = newExtender(t, w, "blocked")
	must(f.conn.ExecContext(soon(t), "CREATE TYPE gtrgm AS (n int)"))(t)
}

func (f *blockedFlow) act(t *testing.T, _ *world, api *stack.Host) {
	_, err := f.asks(t, api, extension.Install)
	mayHaveFailed(t, err)
}

func (f *blockedFlow) check(t *testing.T, _ *world, api *stack.Host) {
	if o := f.ended(t, api, extension.Install, "failed", ""); o.Error == nil || o.Error.Code != "EXTENSION_PREPARATION_FAILED" {
		t.Errorf("it failed with %+v", o.Error)
	}
}

// withdrawnFlow cancels an installation that waits for a lock of the customer's.
type withdrawnFlow struct{ extender }

func (f *withdrawnFlow) ready(t *testing.T, w *world) { f.extender = newExtender(t, w, "withdrawn") }

func (f *withdrawnFlow) act(t *testing.T, w *world, api *stack.Host) {
	holder := must(w.customer(t, f.db.ConnectionString).Begin())(t)
	t.Cleanup(func() { _ = holder.Rollback() })                      // to the end of the test: who cancels does not wait for it
	must(holder.ExecContext(soon(t), "CREATE EXTENSION pg_trgm"))(t) // and never commits
	o := must(f.asks(t, api, extension.Install))(t)
	const query = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = $1)"
	eventually(t, "the agent works on the extension", func() (begun bool, why string) {
		err := w.server.QueryRowContext(t.Context(), query, "pgherd-extension-"+string(o.ID)).Scan(&begun)
		return begun, fmt.Sprint("no session of it ", err)
	})
	must(f.user.at(api).Operations.Cancel(soon(t), o.ID))(t)
}

func (f *withdrawnFlow) check(t *testing.T, _ *world, api *stack.Host) {
	f.ended(t, api, extension.Install, "canceled", "")
}

func changingExtensions() []killing {
	install, upgrade := func() flow { return &extendFlow{change: "install"} }, func() flow { return &extendFlow{change: "upgrade"} }
	blocked, withdrawn := func() flow { return &blockedFlow{} }, func() flow { return &withdrawnFlow{} }
	cases := []killing{kill(inAPI, "install", install(), work.Reserved(extensions.Kind))}
	for _, p := range around(extensions.Kind, "change") {
		cases = append(cases, kill(inBatch, "install", install(), p))
	}
	for _, p := range around(extensions.Kind, "close") {
		cases = append(cases, kill(inBatch, "blocked", blocked(), p), kill(inBatch, "cancel", withdrawn(), p))
	}
	// The agent's own tests kill at each of its points.
	cases = append(cases, kill(inAgent, "install", install(), crash.ExtensionCommitted),
		kill(inAgent, "upgrade", upgrade(), crash.ExtensionMade))
	return slices.Concat(cases, aroundCommits(inBatch, extensions.Kind, "install", install, "succeeded"),
		aroundCommits(inBatch, extensions.Kind, "blocked", blocked, "failing", "failed"),
		aroundCommits(inBatch, extensions.Kind, "cancel", withdrawn, "canceled"))
}
