package spec

import (
	"fmt"
	"slices"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// AddsRole makes an additional role with three connections: ten such roles are all that a database of plan pro takes.
func (c *Customer) AddsRole(db Created, name, profile string) wire.Role {
	c.stage.Helper()
	return c.AddsRoleAs(db, NewRole{DisplayName: name, AccessProfile: profile, ConnectionLimit: 3, IdempotencyKey: "add " + name})
}

// AddsRoleAs makes an additional role as asked for. Where the owner lets roles connect, it takes the steps up to that, and the
// one after it.
func (c *Customer) AddsRoleAs(db Created, n NewRole) wire.Role {
	c.stage.Helper()
	made := must(c.CreateRole(db.ID, n))(c.stage)
	if !c.stage.legacy || made.Status != "reserved" && made.Status != "sql_ready" {
		return made
	}
	c.stage.OK(c.stage.OnServer.Owner(db, c.Prepares(db, made).GrantSQL))
	must(c.Roles.Admit(ctx, db.ID, made.RoleID))(c.stage)
	return c.FindsRole(db, made).Role
}

// AddsLogin makes an additional role and learns its password.
func (c *Customer) AddsLogin(db Created, name, profile string) (wire.Role, Login) {
	c.stage.Helper()
	made := c.AddsRole(db, name, profile)
	return made, c.Reveals(db, made).Login()
}

// Reveals returns a role with its password.
func (c *Customer) Reveals(db Created, r wire.Role) Credential {
	c.stage.Helper()
	return Credential{must(c.Roles.Reveal(ctx, db.ID, r.RoleID))(c.stage)}
}

// ListsRoles returns every role that is not removed.
func (c *Customer) ListsRoles(db Created) []wire.ListedRole {
	c.stage.Helper()
	return must(c.Roles.List(ctx, db.ID, true))(c.stage)
}

// FindsRole returns a role as the list shows it.
func (c *Customer) FindsRole(db Created, r wire.Role) wire.ListedRole {
	c.stage.Helper()
	list := c.ListsRoles(db)
	i := slices.IndexFunc(list, func(other wire.ListedRole) bool { return other.RoleID == r.RoleID })
	c.stage.That(i >= 0, "role %s is not listed", r.DisplayName)
	return list[i]
}

// Rotates gives a role a new password, and sees it done.
func (c *Customer) Rotates(db Created, r wire.Role, key string) wire.RoleChange {
	c.stage.Helper()
	return c.changes(db, r, "rotate", key)
}

// Revokes takes a role's password away, and sees it done.
func (c *Customer) Revokes(db Created, r wire.Role) wire.RoleChange {
	c.stage.Helper()
	return c.changes(db, r, "revoke", "revoke "+string(r.RoleID))
}

func (c *Customer) changes(db Created, r wire.Role, kind RoleKind, key string) wire.RoleChange {
	c.stage.Helper()
	done := must(c.ChangeRole(db.ID, r.RoleID, kind, key))(c.stage)
	c.stage.That(done.Status == "completed", "the change is %+v", done)
	return done
}

// Deletes removes a role for good.
func (c *Customer) Deletes(db Created, r wire.Role) {
	c.stage.Helper()
	gone := must(c.DeleteRole(db.ID, r.RoleID))(c.stage)
	c.stage.That(gone == wire.RoleRemoval{RoleID: r.RoleID, Status: "removed"}, "the removal is %+v", gone)
}

// ByTransaction is the same log-in through the second entry.
func (l Login) ByTransaction() Login {
	l.Database += ".transaction"
	return l
}

// bothIn opens a connection through each entry.
func (s *Stage) bothIn(l Login) []Session {
	s.Helper()
	return []Session{s.Connects(l), s.Connects(l.ByTransaction())}
}

// bothOut fails the story where a log-in gets in through either entry.
func (s *Stage) bothOut(l Login) {
	s.Helper()
	s.ShutOut(l)
	s.ShutOut(l.ByTransaction())
}

// closed fails the story unless each connection was ended.
func (s *Stage) closed(sessions ...Session) {
	s.Helper()
	for i, session := range sessions {
		s.That(session.Ended(), "connection %d outlived the change", i)
	}
}

// open fails the story where a connection does not work any more.
func (s *Stage) open(sessions ...Session) {
	s.Helper()
	for i, session := range sessions {
		s.That(session.Alive(), "connection %d was closed", i)
	}
}

// nth numbers a name.
func nth(word string, n int) string { return fmt.Sprintf("%s %d", word, n) }

// usernames are those of roles, in the order of a list.
func usernames(list []wire.ListedRole) (names []string) {
	for _, r := range list {
		names = append(names, r.Username)
	}
	return names
}

// usernameOf is the login name of a role.
func usernameOf(db Created, ordinal int) string {
	kind := "c"
	if db.Model == "single_login" {
		kind = "l"
	}
	return fmt.Sprintf("pgh_%s_%s%d", compact(db.ID), kind, ordinal)
}
