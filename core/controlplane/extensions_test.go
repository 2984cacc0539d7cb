package controlplane_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

func TestAnExtensionIsInstalledAndUpgraded(t *testing.T) {
	w := newExtensionWorld(t)
	w.server.PutExtension("shop", "pg_trgm", "1.3", "public")
	for _, q := range []extension.Request{install("citext", "a"), upgrade("pg_trgm", "b"), install("pgcrypto", "c")} {
		o := must(w.Extensions.Start(w.ctx, w.forExtensions(), q))(t)
		equal(t, "status", o.Status, operation.Queued)
		w.work(w.ControlPlane)
		o = w.readExtension(o.ID)
		want := string(operation.Encode(extension.Result{
			Extension: q.Extension, InstalledVersion: q.Extension.Version(16), Schema: "public",
		}))
		if o.Status != operation.Succeeded || string(o.Result) != want || o.Progress != 100 {
			t.Errorf("%s: %+v", q.Extension, o)
		}
		equal(t, "installed", w.entry(q.Extension).InstalledVersion, q.Extension.Version(16))
	}
	if got := w.events(); !slices.Equal(got, slices.Repeat([]string{"extension.succeeded"}, 3)) {
		t.Error(got)
	}
	log := w.activity(w.only().ID)
	equal(t, "requested", count(log, audit.ExtensionRequested), 3)
	equal(t, "finished", count(log, audit.ExtensionFinished), 3)
}

// What a request is refused for is in the rules' own test; here is where each fact comes from. The server is asked only where the
// answer depends on it.
func TestAnExtensionIsUnavailable(t *testing.T) {
	w := newExtensionWorld(t)
	citext := install("citext", "k")
	asked := w.server.Calls("Extensions")
	w.losing("ChangeLogin", 0)
	_, _ = w.ManagedLogins.Rotate(w.ctx, w.reached(w.only().ID), database.RuntimeLogin, "rotate")
	w.unavailable(citext) // a pending change
	w.server.OnCall(nil)
	w.clock.Advance(2 * time.Minute)
	w.batch(w.ControlPlane)

	backup := must(w.Backups.Start(w.ctx, w.reached(w.only().ID)))(t)
	w.unavailable(citext) // an open operation
	must(w.Operations.Cancel(w.ctx, w.reachedOperation(backup.ID)))(t)

	must(w.Databases.SetLifecycle(w.ctx, w.reached(w.only().ID), database.Stop))(t)
	w.unavailable(citext) // not active
	must(w.Databases.SetLifecycle(w.ctx, w.reached(w.only().ID), database.Start))(t)
	equal(t, "questions", w.server.Calls("Extensions"), asked)

	w.unavailable(upgrade("citext", "k")) // not installed
	for _, o := range []fakeagent.Offer{{}, {DefaultVersion: "1.6"}, {DefaultVersion: "1.7", Trusted: true}} {
		w.server.SetOffer("citext", o)
		w.unavailable(citext)
	}
	w.server.SetOffer("citext", fakeagent.Offer{DefaultVersion: "1.6", Trusted: true})
	must(w.Extensions.Start(w.ctx, w.forExtensions(), citext))(t)
}

func TestASingleLoginDatabaseHasTheCatalogAlone(t *testing.T) {
	w := newWorld(t)
	w.readyForExtensions()
	r := request("single")
	r.RoleModel = new(database.SingleLogin)
	single := w.reachedForExtensions(must(w.Databases.Create(w.ctx, w.caller, r))(t).Record.ID)
	equal(t, "entries", len(must(w.Extensions.Catalog(w.ctx, single))(t)), 3)
	refused(t, errOf(w.Extensions.Start(w.ctx, single, install("citext", "k"))), fault.ExtensionMutationUnavailable)
}

func TestTheCatalogNeedsAnActiveDatabaseAndItsServer(t *testing.T) {
	w := newExtensionWorld(t)
	for want, all := range map[fault.Code][]func(bool){
		fault.AgentError: {w.server.SetUnreachable, w.server.SetUnavailable}, fault.AgentRouteUnavailable: {w.outdated},
	} {
		for _, broken := range all {
			broken(true)
			refused(t, errOf(w.Extensions.Catalog(w.ctx, w.forExtensions())), want)
			refused(t, errOf(w.Extensions.Start(w.ctx, w.forExtensions(), install("citext", "k"))), want)
			broken(false)
		}
	}
	must(w.Databases.SetLifecycle(w.ctx, w.reached(w.only().ID), database.Stop))(t)
	refused(t, errOf(w.Extensions.Catalog(w.ctx, w.forExtensions())), fault.DatabaseStateConflict)
}

// A trial that passes qualifies what it tried. One of which nothing is known leaves what was stored, and is closed at the agent.
func TestQualifyingExtensions(t *testing.T) {
	w := newWorld(t)
	ok(t, w.Operator.SetFeature(w.ctx, "extension-catalog", true))
	w.made("shop")
	qualified := func(want bool) {
		t.Helper()
		equal(t, "qualified", w.entry("citext").RestoreQualified, want)
	}
	qualified(false)
	w.unavailable(install("citext", "k"))
	if list := must(w.Operator.Trials(w.ctx, w.machine))(t); len(list) != 3 || !list[0].At.IsZero() {
		t.Errorf("%+v", list)
	}
	w.server.FailExtensions("a row is missing")
	if list := must(w.Operator.QualifyExtensions(w.ctx, w.machine.ID))(t); len(list) != 3 || list[0].Message != "a row is missing" {
		t.Errorf("%+v", list)
	}
	qualified(false)
	w.server.FailExtensions("")
	for range 2 { // the second finds out nothing new
		must(w.Operator.QualifyExtensions(w.ctx, w.machine.ID))(t)
	}
	qualified(true)
	outcomes := map[string]int{}
	for _, e := range must(w.Operator.InstallationAudit(w.ctx, ports.Page{}))(t) {
		if e.What.Action == audit.ExtensionTried {
			outcomes[e.What.Details["qualified"]]++
		}
	}
	if len(outcomes) != 2 || outcomes["none -> false"] != 3 || outcomes["false -> true"] != 3 {
		t.Errorf("the log has %v", outcomes)
	}

	closed := w.server.Calls("Close")
	w.refusing("QualifyExtension", command.ReasonUnavailable)
	list, err := w.Operator.QualifyExtensions(w.ctx, w.machine.ID)
	if len(list) != 0 || !command.RefusedFor(err, command.ReasonUnavailable) {
		t.Errorf("%v, %v", list, err)
	}
	equal(t, "closed", w.server.Calls("Close"), closed+3)
	qualified(true)
	w.server.SetOffer("citext", fakeagent.Offer{DefaultVersion: "1.7", Trusted: true})
	qualified(false)
	closed = w.server.Calls("Close")
	ctx, stop := context.WithCancel(w.ctx)
	w.inEveryCall("QualifyExtension", func() fakeagent.Fault { stop(); return fakeagent.Fault{Before: context.Canceled} })
	if list, err := w.Operator.QualifyExtensions(ctx, w.machine.ID); len(list) != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", list, err)
	}
	equal(t, "begun, as the caller leaves during the first", w.server.Calls("Close"), closed+1)
	refused(t, errOf(w.Operator.QualifyExtensions(w.ctx, "0189abcd-ef01-4234-8567-89abcdef0123")), fault.ValidationError)
}

// A server that nobody has asked yet, as at the first start of a development host, is asked which PostgreSQL it has.
func TestQualifyingExtensionsOfANewServer(t *testing.T) {
	w := newWorld(t)
	n := newServer("two")
	n.Unchecked = true
	two := must(w.Operator.AddServer(w.ctx, n))(t)
	equal(t, "known before", two.PostgresVersion, 0)
	list := must(w.Operator.QualifyExtensions(w.ctx, two.ID))(t)
	if len(list) != 3 || !list[0].Qualified || list[0].Version != list[0].Extension.Version(16) {
		t.Errorf("%+v", list)
	}
}
