package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var extensionCases = map[string]func(t *testing.T, s Stand){
	"extensions are listed and installed":     extensionInstalled,
	"extension that cannot be changed":        extensionUnchanged,
	"extension of no database":                extensionOfNothing,
	"extension closed":                        extensionClosed,
	"extension is qualified":                  extensionQualified,
	"extension that the server does not have": extensionNotQualified,
}

// installing is the command that installs an extension in a database, in the version that the server offers.
func (s Stand) installing(t *testing.T, db id.DatabaseID, name extension.Name) command.ChangeExtension {
	t.Helper()
	return command.ChangeExtension{DatabaseID: db, Extension: name, Change: extension.Install, Version: s.offered(t, name)}
}

// offered is the version of an extension that comes with the server's PostgreSQL.
func (s Stand) offered(t *testing.T, name extension.Name) string {
	t.Helper()
	return name.Version(must(ports.Ask(bounded(t), s.Agent, command.AskCapabilities{}))(t).PostgresVersion)
}

func changedExtension(t *testing.T, s Stand, fence ports.Fence, c command.ChangeExtension) command.ExtensionReport {
	t.Helper()
	return over(t, s, fence, c, func(r command.ExtensionReport) (bool, int) { return r.State == command.ExtensionRunning, 0 })
}

func provedExtension(t *testing.T, s Stand, fence ports.Fence, c command.QualifyExtension) command.ExtensionProof {
	t.Helper()
	return over(t, s, fence, c, func(r command.ExtensionProof) (bool, int) { return r.State == command.ExtensionRunning, 0 })
}

func extensionInstalled(t *testing.T, s Stand) {
	db, _ := made(t, s)
	fence, c := newFence(), s.installing(t, db.DatabaseID, extension.PgTrgm)
	first := changedExtension(t, s, fence, c)
	if want := (command.ExtensionReport{
		State: command.ExtensionDone, Stage: "done", Changed: true, InstalledVersion: "1.6", Schema: "public",
	}); first != want {
		t.Errorf("got %+v", first)
	}
	fence.Epoch++
	if again := changedExtension(t, s, fence, c); again != first {
		t.Errorf("first %+v, then %+v", first, again)
	}
	fence.Epoch--
	s.refuses(t, fence, c, command.ReasonFenced)
	fence.Epoch++
	c.Extension = extension.Citext
	s.refuses(t, fence, c, command.ReasonConflict)
	wantReason(t, ports.Close(bounded(t), s.Agent, fence), command.ReasonCompleted)

	list := must(ports.Ask(bounded(t), s.Agent, command.Extensions{DatabaseID: db.DatabaseID}))(t)
	if list.ServerVersion == "" {
		t.Error("the server's version is not known")
	}
	if diff := cmp.Diff([]command.ExtensionEntry{
		{Name: extension.Citext, Available: true, Trusted: true, DefaultVersion: s.offered(t, extension.Citext)},
		{
			Name: extension.PgTrgm, Available: true, Trusted: true, DefaultVersion: "1.6", InstalledVersion: "1.6", Schema: "public",
		},
		{Name: extension.PgCrypto, Available: true, Trusted: true, DefaultVersion: s.offered(t, extension.PgCrypto)},
	}, list.Entries); diff != "" {
		t.Errorf("the catalog (-want +got):\n%s", diff)
	}
}

func extensionUnchanged(t *testing.T, s Stand) {
	db, _ := made(t, s)
	upgrade := s.installing(t, db.DatabaseID, extension.Citext)
	upgrade.Change = extension.Upgrade
	other := s.installing(t, db.DatabaseID, extension.Citext)
	other.Version = "1.5"
	for _, c := range []command.ChangeExtension{upgrade, other} {
		fence := newFence()
		report := changedExtension(t, s, fence, c)
		if report.State != command.ExtensionFailed || report.Changed || report.Reason == "" || report.Message == "" {
			t.Errorf("%+v: %+v", c, report)
		}
		noError(t, ports.Close(bounded(t), s.Agent, fence))
	}
}

func extensionOfNothing(t *testing.T, s Stand) {
	db := newID[id.DatabaseID]()
	s.refuses(t, newFence(), s.installing(t, db, extension.Citext), command.ReasonNotFound)
	wantReason(t, refusal(ports.Ask(bounded(t), s.Agent, command.Extensions{DatabaseID: db})), command.ReasonNotFound)
}

// extensionClosed closes a change that has hardly begun: on a real server that may have been faster.
func extensionClosed(t *testing.T, s Stand) {
	db, _ := made(t, s)
	fence, c := newFence(), s.installing(t, db.DatabaseID, extension.PgTrgm)
	must(ports.Do(bounded(t), s.Agent, fence, c))(t)
	err, want := ports.Close(bounded(t), s.Agent, fence), ""
	if command.RefusedFor(err, command.ReasonCompleted) {
		err, want = nil, "1.6"
	}
	noError(t, err)
	list := must(ports.Ask(bounded(t), s.Agent, command.Extensions{DatabaseID: db.DatabaseID}))(t)
	if got := list.Entries[1].InstalledVersion; got != want {
		t.Errorf("version %q stands, want %q", got, want)
	}
}

func extensionQualified(t *testing.T, s Stand) {
	fence, c := newFence(), command.QualifyExtension{Extension: extension.PgTrgm, Version: "1.6"}
	first := provedExtension(t, s, fence, c)
	want := command.ExtensionProof{
		State: command.ExtensionDone, Stage: "done", Qualified: true, Version: "1.6", ServerVersion: first.ServerVersion,
	}
	if first != want || first.ServerVersion == "" {
		t.Errorf("got %+v", first)
	}
	if again := provedExtension(t, s, fence, c); again != first {
		t.Errorf("first %+v, then %+v", first, again)
	}
	noError(t, ports.Close(bounded(t), s.Agent, fence))
	s.refuses(t, fence, c, command.ReasonClosed)
}

func extensionNotQualified(t *testing.T, s Stand) {
	c := command.QualifyExtension{Extension: extension.Citext, Version: "9.9"}
	proof := provedExtension(t, s, newFence(), c)
	if proof.State != command.ExtensionDone || proof.Qualified || proof.Message == "" {
		t.Errorf("got %+v", proof)
	}
}
