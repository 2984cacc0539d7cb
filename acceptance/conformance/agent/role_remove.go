package agent

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

func (g *stage) removal(account ...id.DatabaseID) command.RemoveRole {
	return command.RemoveRole{
		DatabaseID: g.spec.DatabaseID, Username: g.login.Username, Generation: g.generation(), AccountDatabases: account,
	}
}

func (g *stage) remove(t *testing.T, account ...id.DatabaseID) role.Dependencies {
	t.Helper()
	return must(ports.Do(bounded(t), g.Agent, changeFence(), g.removal(account...)))(t)
}

// wantGone checks that a removal found nothing, and that the role is no more.
func (g *stage) wantGone(t *testing.T, found role.Dependencies) {
	t.Helper()
	if found.Any() {
		t.Errorf("got %+v", found)
	}
	g.wantListed(t, false)
	g.wantIn(t, g.login, false)
	g.wantCondition(t, g.login, command.LoginAbsent)
}

// A role may stand open when it is removed: the reply to its admission can have been lost.
func roleRemoved(t *testing.T, s Stand) {
	for _, profile := range []role.AccessProfile{role.ReadOnly, role.ReadWrite, role.Custom} {
		g := stageOf(t, s)
		g.role.AccessProfile = profile
		did(t, g.Server.Load(g.spec.Name, "CREATE TABLE early (n bigserial);\n"), "making a table")
		g.open(t)
		own, bystander := g.sessions(t, g.login), g.sessions(t, g.spec.Logins[0])
		removal, fence := g.removal(), changeFence()
		for range 2 { // the second time it is the same command
			found := must(ports.Do(bounded(t), g.Agent, fence, removal))(t)
			g.wantGone(t, found)
		}
		wantAlive(t, own, false)
		wantAlive(t, bystander, true)
	}
}

func roleRemovedUnopened(t *testing.T, s Stand) {
	g := stageOf(t, s)
	g.prepare(t)
	g.wantGone(t, g.remove(t))

	g = admitted(t, s)
	g.change(t, g.shutting(role.Revocation))
	g.wantGone(t, g.remove(t))
}

func roleRemovedAbsent(t *testing.T, s Stand) {
	g := stageOf(t, s)
	g.wantGone(t, g.remove(t))

	g = admitted(t, s)
	did(t, g.Server.DropLogin(g.login.Username), "dropping the login by hand")
	g.wantGone(t, g.remove(t))
}

func roleKeptByGrant(t *testing.T, s Stand)  { roleKept(t, s, role.GrantDependency) }
func roleKeptByObject(t *testing.T, s Stand) { roleKept(t, s, role.OwnedDependency) }
func roleKeptByPolicy(t *testing.T, s Stand) { roleKept(t, s, role.PolicyDependency) }

// roleKept has something depend on a role: it stays, shut, until that is gone and another operation removes it.
func roleKept(t *testing.T, s Stand, kind role.DependencyKind) {
	t.Helper()
	g := admitted(t, s)
	g.depend(t, g.spec, kind, "kept")
	sessions := g.sessions(t, g.login)
	removal, fence := g.removal(), changeFence()
	for range 2 { // the second time it is the same command
		found := must(ports.Do(bounded(t), g.Agent, fence, removal))(t)
		wantDependency(t, found, kind, "kept")
		g.wantListed(t, true)
		g.wantIn(t, g.login, false)
		g.wantCondition(t, g.login, command.LoginDrifted)
	}
	wantAlive(t, sessions, false)

	did(t, g.Server.DropDependencies(g.login.Username), "removing what depends on the role")
	g.wantIn(t, g.login, false)
	g.wantGone(t, g.remove(t))
}

// depend makes something in a database depend on the stage's role.
func (g *stage) depend(t *testing.T, in command.EnsureDatabase, kind role.DependencyKind, name string) {
	t.Helper()
	d := role.Dependency{Kind: kind, ObjectType: "table", Schema: "public", Name: name, Identity: "public." + name}
	if kind == role.GrantDependency {
		d.Grantor = in.Name
	}
	did(t, g.Server.AddDependencyIn(in.Name, g.login.Username, d), "making a dependency")
}

func wantDependency(t *testing.T, found role.Dependencies, kind role.DependencyKind, name string) {
	t.Helper()
	if len(found.List) != 1 || found.Truncated {
		t.Fatalf("got %+v, want one dependency", found)
	}
	if d := found.List[0]; d.Kind != kind || d.Name != name || d.Schema != "public" || d.ObjectType == "" || d.Identity == "" {
		t.Errorf("got %+v, want a %s of %s", d, kind, name)
	}
	if d := found.List[0]; (d.Grantor != "") != (kind == role.GrantDependency) {
		t.Errorf("the grantor of a %s is %q", kind, d.Grantor)
	}
}

// A list of dependencies ends after twenty, and says so.
func roleKeptByMany(t *testing.T, s Stand) {
	g := admitted(t, s)
	for n := 1; n <= role.MaxDependencies+1; n++ {
		g.depend(t, g.spec, role.GrantDependency, fmt.Sprintf("kept%d", n))
		if n < role.MaxDependencies {
			continue
		}
		if found := g.remove(t); len(found.List) != role.MaxDependencies || found.Truncated != (n > role.MaxDependencies) {
			t.Errorf("of %d dependencies %d are listed, truncated: %t", n, len(found.List), found.Truncated)
		}
	}
	g.wantListed(t, true)
	did(t, g.Server.DropDependencies(g.login.Username), "removing what depends on the role")
	g.wantGone(t, g.remove(t))
}

// What depends on a role in another database counts where it is one of the account's; in any other it neither counts nor is told.
func roleKeptElsewhere(t *testing.T, s Stand) {
	g, other := admitted(t, s), newSpec(database.SingleLogin)
	noError(t, ports.Tell(bounded(t), g.Agent, newFence(), other))
	g.depend(t, other, role.GrantDependency, "kept")

	found := g.remove(t, other.DatabaseID, g.spec.DatabaseID)
	if len(found.List) != 1 || found.List[0].Kind != role.OtherDatabase {
		t.Errorf("got %+v, want one dependency in another database", found)
	}
	g.wantListed(t, true)
	g.wantIn(t, g.login, false)
	g.wantGone(t, g.remove(t, g.spec.DatabaseID))
}
