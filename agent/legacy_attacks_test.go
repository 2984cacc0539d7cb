package agent_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// What the owner of a database with a single login, who grants CONNECT there, and its additional roles do with that, and with the
// groups that they stand on.

// legacyStack is a database with roles of each profile that may log in; the last is only prepared.
func legacyStack(t testing.TB) (s *stack, w wanted, reader, custom, prepared loginOf) {
	t.Helper()
	s, w = modelStack(t, database.SingleLogin)
	check.Must(s.owner(t, w).Exec("CREATE TABLE things (n int); INSERT INTO things VALUES (7)"))(t)
	reader, custom = s.opened(t, w.additional(1, role.ReadOnly)), s.opened(t, w.additional(2, role.Custom))
	prepared = w.additional(3, role.ReadWrite)
	s.done(t, prepared.prepare(1))
	return s, w, reader, custom, prepared
}

// onDatabase fills a statement about CONNECT: %[1]s is the database, %[2]s a role.
func onDatabase(statement string, w wanted, to string) string {
	return fmt.Sprintf(statement, quoted(w.name), to)
}

const (
	grantConnect  = "GRANT CONNECT ON DATABASE %[1]s TO %[2]s"
	passConnect   = grantConnect + " WITH GRANT OPTION"
	revokeConnect = "REVOKE CONNECT ON DATABASE %[1]s FROM %[2]s"
)

// The owner's CONNECT opens nothing by itself: neither a role that is not admitted, nor one that is revoked or removed.
func TestConnectOfTheOwnerOpensNoRole(t *testing.T) {
	s, w, reader, custom, prepared := legacyStack(t)
	owner := s.owner(t, w)
	if _, err := owner.Exec(onDatabase(grantConnect, w, w.additional(4, role.Custom).username)); sqlState(err) != "42704" {
		t.Errorf("CONNECT of a role that is not there: %v", err)
	}
	check.Must(owner.Exec(onDatabase(grantConnect, w, prepared.username)))(t)
	s.getsInNowhere(t, "prepared", prepared)
	for _, change := range []role.Kind{role.Expiry, role.Revocation} {
		s.done(t, reader.shut(change, s.nextGeneration()))
		check.Must(owner.Exec(onDatabase(revokeConnect, w, reader.username)))(t)
		check.Must(owner.Exec(onDatabase(grantConnect, w, reader.username)))(t)
		s.getsInNowhere(t, string(change), reader)
	}
	check.Must(owner.Exec("GRANT SELECT ON things TO " + custom.username))(t)
	if found := s.removed(t, custom.remove(2)); len(found.List) != 1 { // it stays, dead
		t.Errorf("%+v", found)
	}
	check.Must(owner.Exec(onDatabase(grantConnect, w, custom.username)))(t)
	s.getsInNowhere(t, "kept", custom)
	check.Must(owner.Exec("REVOKE SELECT ON things FROM " + custom.username))(t)
	for _, l := range []loginOf{reader, custom, prepared} {
		s.soonRemoved(t, l, s.nextGeneration())
	}
	s.noOrphans(t)
}

// What everybody may, or a group, was not granted to the role: it is not admitted. Nobody else comes by that through the pooler.
func TestConnectOfAllAdmitsNoRole(t *testing.T) {
	s, w, reader, _, prepared := legacyStack(t)
	owner, stranger := s.owner(t, w), s.made(t, database.Managed)
	for _, all := range []string{"PUBLIC", w.names().ReadGroup, w.names().WriteGroup} {
		check.Must(owner.Exec(onDatabase(grantConnect, w, all)))(t)
		s.refusedFor(t, command.ReasonConnectRequired, prepared.open(1))
		s.getsInNowhere(t, "with CONNECT of "+all, prepared)
	}
	for _, entry := range []string{w.name, w.name + ".transaction"} {
		l := stranger.present(database.RuntimeLogin)
		refused(t, "a stranger at "+entry, s.pooled(t, entry, l.username, l.password), "SELECT 1")
	}
	// A role that was admitted keeps what everybody has, and is shut as ever.
	check.Must(owner.Exec(onDatabase(revokeConnect, w, reader.username)))(t)
	next := reader.renewed()
	proof := as[role.Proof](t, s.done(t, reader.rotate(2, next)))
	if proof.ConnectMissing || !proof.NewAccepted || !proof.OldRefused {
		t.Errorf("%+v", proof)
	}
	s.done(t, next.shut(role.Revocation, 3))
	s.getsInNowhere(t, "revoked", next)
	s.soonRemoved(t, next, 4)
	s.soonRemoved(t, prepared, 2)
	s.noOrphans(t)
}

// Who may pass CONNECT on, and has, is kept by that until the owner takes it back; so is whom it was given to. A stranger's role
// that it was given to is not.
func TestConnectThatARolePassesOn(t *testing.T) {
	s, w, reader, custom, prepared := legacyStack(t)
	owner, theirs := s.owner(t, w), s.direct(t, w.name, custom.username, custom.password)
	stranger := s.madeWithRoles(t, database.SingleLogin)
	guest := s.opened(t, stranger.additional(1, role.ReadOnly))
	oid := s.oidOf(t, guest)
	check.Must(owner.Exec(onDatabase(passConnect, w, custom.username)))(t)
	check.Must(owner.Exec(onDatabase(revokeConnect, w, reader.username)))(t)
	for _, to := range []string{reader.username, prepared.username, guest.username, "PUBLIC"} {
		check.Must(theirs.Exec(onDatabase(grantConnect, w, to)))(t)
	}
	s.done(t, prepared.open(1))
	s.getsIn(t, "with CONNECT of another role's", prepared)
	refused(t, "a guest, pooled", s.pooled(t, w.name, guest.username, guest.password), "SELECT 1")
	s.done(t, guest.rotate(2, guest.renewed()))
	s.soonRemoved(t, guest, 3) // by the stranger, who is told nothing, and need not wait
	s.noDead(t, oid)

	if _, err := owner.Exec(onDatabase(revokeConnect, w, custom.username)); sqlState(err) != "2BP01" {
		t.Errorf("the owner takes back what was passed on: %v", err)
	}
	kept := role.Dependency{Kind: "grant", ObjectType: "database", Name: quoted(w.name), Identity: quoted(w.name)}
	s.done(t, custom.shut(role.Revocation, 2))
	s.getsInNowhere(t, "revoked", custom)
	for _, l := range []loginOf{custom, reader} {
		if found := s.removed(t, l.remove(s.nextGeneration())); len(found.List) != 1 || found.List[0] != kept {
			t.Errorf("%s: %+v", l.username, found)
		}
		s.getsInNowhere(t, "kept", l)
	}
	check.Must(owner.Exec("DROP OWNED BY " + reader.username))(t)
	if found := s.removed(t, reader.remove(s.nextGeneration())); len(found.List) != 1 {
		t.Errorf("DROP OWNED took what another role granted: %+v", found)
	}
	check.Must(owner.Exec("DROP OWNED BY " + custom.username))(t)
	s.getsInNowhereDirectly(t, prepared)
	for _, l := range []loginOf{custom, reader, prepared} {
		s.soonRemoved(t, l, s.nextGeneration())
	}
	s.noOrphans(t)
}

// The owner has no power over the groups, nor over its roles: what they are for, only the platform gives.
func TestOwnerHasNoPowerOverGroupsAndRoles(t *testing.T) {
	s, w, reader, custom, prepared := legacyStack(t)
	stranger := s.madeWithRoles(t, database.SingleLogin)
	guest := s.opened(t, stranger.additional(1, role.Custom))
	owner := s.owner(t, w)
	n, others := w.names(), stranger.names()
	for _, group := range []string{n.ReadGroup, n.WriteGroup, others.ReadGroup, reader.username, prepared.username, n.Holder} {
		for _, to := range []string{quoted(w.name), custom.username, guest.username, quoted(stranger.name)} {
			denied(t, "the owner", owner, fmt.Sprintf("GRANT %s TO %s", group, to))
		}
		for _, statement := range []string{
			"SET ROLE %s", "DROP ROLE %s", "DROP OWNED BY %s", "REASSIGN OWNED BY %s TO CURRENT_USER",
			"REASSIGN OWNED BY CURRENT_USER TO %s", "ALTER ROLE %s LOGIN PASSWORD 'x'", "ALTER ROLE %s SET work_mem = '1GB'",
			"ALTER TABLE things OWNER TO %s", "CREATE SCHEMA AUTHORIZATION %s",
			"ALTER DEFAULT PRIVILEGES FOR ROLE %s GRANT ALL ON TABLES TO PUBLIC", "COMMENT ON ROLE %s IS 'x'",
			"REVOKE %s FROM " + reader.username,
		} {
			if group == others.ReadGroup && statement == "REVOKE %s FROM "+reader.username {
				continue // it is no member, which is a warning
			}
			denied(t, "the owner", owner, fmt.Sprintf(statement, group))
		}
	}
	denied(t, "the owner", owner, fmt.Sprintf("GRANT %s TO %s", quoted(w.name), custom.username))
	check.Must(s.pooled(t, w.name, reader.username, reader.password).Exec("TABLE things"))(t)
}

// What the groups hold is the owner's to take. The roles are set up, changed and removed all the same. An opt-in that is repeated
// gives nothing back.
func TestOwnerTakesTheGroupsRights(t *testing.T) {
	s, w, reader, _, prepared := legacyStack(t)
	owner, n := s.owner(t, w), w.names()
	check.Must(owner.Exec(fmt.Sprintf(`REVOKE ALL ON things FROM %[1]s, %[2]s CASCADE;
		REVOKE ALL ON SCHEMA public FROM %[1]s, %[2]s; ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM %[1]s, %[2]s;
		ALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM %[1]s, %[2]s;
		ALTER DEFAULT PRIVILEGES REVOKE ALL ON SEQUENCES FROM %[1]s, %[2]s`, n.ReadGroup, n.WriteGroup)))(t)
	denied(t, "a reader", s.direct(t, w.name, reader.username, reader.password), "TABLE things")
	s.connect(t, prepared)
	s.done(t, prepared.open(1))
	next := reader.renewed()
	s.done(t, reader.rotate(2, next))
	s.getsIn(t, "rotated", next)
	check.Must(owner.Exec("CREATE TABLE later (n int)"))(t)
	s.doneInTheEnd(t, w.optIn()) // gives nothing back
	for _, table := range []string{"things", "later"} {
		denied(t, "a reader", s.direct(t, w.name, next.username, next.password), "TABLE "+table)
		denied(t, "a writer", s.direct(t, w.name, prepared.username, prepared.password), "INSERT INTO "+table+" VALUES (1)")
	}
	s.done(t, next.shut(role.Revocation, 3))
	s.soonRemoved(t, next, 4)
	s.soonRemoved(t, prepared, 2)
}

// A custom role that the owner lets make things has them keep it, and gives to its like and to the groups what is its own.
func TestRoleThatMakesThingsForOthers(t *testing.T) {
	s, w, reader, custom, _ := legacyStack(t)
	owner, n := s.owner(t, w), w.names()
	check.Must(owner.Exec(fmt.Sprintf(`GRANT CREATE ON DATABASE %q TO %s;
		GRANT SELECT ON things TO %[2]s WITH GRANT OPTION`, w.name, custom.username)))(t)
	theirs := s.direct(t, w.name, custom.username, custom.password)
	check.Must(theirs.Exec(fmt.Sprintf(`CREATE SCHEMA theirs; CREATE TABLE theirs.own (n int);
		GRANT USAGE ON SCHEMA theirs TO %[1]s; GRANT ALL ON theirs.own TO %[1]s, %[2]s; GRANT SELECT ON things TO %[3]s;
		ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO %[1]s, %[2]s`, n.ReadGroup, n.WriteGroup, reader.username)))(t)
	check.Must(s.direct(t, w.name, reader.username, reader.password).Exec("TABLE theirs.own"))(t)
	s.doneInTheEnd(t, w.optIn()) // what is not the owner's it leaves
	// Its grant keeps the other role, too; the owner takes it back with what that came from.
	if found := s.removed(t, reader.remove(2)); len(found.List) != 1 || found.List[0].Name != "things" {
		t.Errorf("%+v", found)
	}
	s.done(t, custom.shut(role.Revocation, 2))
	if found := s.removed(t, custom.remove(3)); len(found.List) != 5 {
		t.Errorf("%d: %+v", len(found.List), found)
	}
	check.Must(owner.Exec("REVOKE ALL ON things FROM " + custom.username + " CASCADE"))(t)
	s.soonRemoved(t, reader, 3)
	check.Must(owner.Exec(fmt.Sprintf("REASSIGN OWNED BY %s TO CURRENT_USER; DROP OWNED BY %[1]s", custom.username)))(t)
	check.Must(owner.Exec(fmt.Sprintf("REVOKE CREATE ON DATABASE %q FROM %s", w.name, custom.username)))(t)
	s.soonRemoved(t, custom, 4)
	check.Must(owner.Exec("TABLE theirs.own"))(t)
	s.noOrphans(t)
}
