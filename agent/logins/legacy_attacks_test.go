package logins_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// What the owner of a database with a single login, who grants CONNECT there, and its additional roles do with that, and with the
// groups that they stand on.

// legacyStack is a database with roles of each profile that may log in; the last is only prepared.
func legacyStack(t testing.TB) (s *agenttest.Stack, w agenttest.Wanted, reader, custom, prepared agenttest.LoginOf) {
	t.Helper()
	s, w = agenttest.ModelStack(t, database.SingleLogin)
	check.Must(s.Owner(t, w).Exec("CREATE TABLE things (n int); INSERT INTO things VALUES (7)"))(t)
	reader, custom = s.Opened(t, w.Additional(1, role.ReadOnly)), s.Opened(t, w.Additional(2, role.Custom))
	prepared = w.Additional(3, role.ReadWrite)
	s.Done(t, prepared.Prepare(1))
	return s, w, reader, custom, prepared
}

// onDatabase fills a statement about CONNECT: %[1]s is the database, %[2]s a role.
func onDatabase(statement string, w agenttest.Wanted, to string) string {
	return fmt.Sprintf(statement, agenttest.Quoted(w.Name), to)
}

const (
	grantConnect  = "GRANT CONNECT ON DATABASE %[1]s TO %[2]s"
	passConnect   = grantConnect + " WITH GRANT OPTION"
	revokeConnect = "REVOKE CONNECT ON DATABASE %[1]s FROM %[2]s"
)

// The owner's CONNECT opens nothing by itself: neither a role that is not admitted, nor one that is revoked or removed.
func TestConnectOfTheOwnerOpensNoRole(t *testing.T) {
	s, w, reader, custom, prepared := legacyStack(t)
	owner := s.Owner(t, w)
	if _, err := owner.Exec(onDatabase(grantConnect, w, w.Additional(4, role.Custom).Username)); agenttest.SQLState(err) != "42704" {
		t.Errorf("CONNECT of a role that is not there: %v", err)
	}
	check.Must(owner.Exec(onDatabase(grantConnect, w, prepared.Username)))(t)
	s.GetsInNowhere(t, "prepared", prepared)
	for _, change := range []role.Kind{role.Expiry, role.Revocation} {
		s.Done(t, reader.Shut(change, s.NextGeneration()))
		check.Must(owner.Exec(onDatabase(revokeConnect, w, reader.Username)))(t)
		check.Must(owner.Exec(onDatabase(grantConnect, w, reader.Username)))(t)
		s.GetsInNowhere(t, string(change), reader)
	}
	check.Must(owner.Exec("GRANT SELECT ON things TO " + custom.Username))(t)
	if found := s.Removed(t, custom.Remove(2)); len(found.List) != 1 { // it stays, dead
		t.Errorf("%+v", found)
	}
	check.Must(owner.Exec(onDatabase(grantConnect, w, custom.Username)))(t)
	s.GetsInNowhere(t, "kept", custom)
	check.Must(owner.Exec("REVOKE SELECT ON things FROM " + custom.Username))(t)
	for _, l := range []agenttest.LoginOf{reader, custom, prepared} {
		soonRemoved(t, s, l, s.NextGeneration())
	}
	s.NoOrphans(t)
}

// What everybody may, or a group, was not granted to the role: it is not admitted. Nobody else comes by that through the pooler.
func TestConnectOfAllAdmitsNoRole(t *testing.T) {
	s, w, reader, _, prepared := legacyStack(t)
	owner, stranger := s.Owner(t, w), s.Made(t, database.Managed)
	for _, all := range []string{"PUBLIC", w.Names().ReadGroup, w.Names().WriteGroup} {
		check.Must(owner.Exec(onDatabase(grantConnect, w, all)))(t)
		s.RefusedFor(t, command.ReasonConnectRequired, prepared.Open(1))
		s.GetsInNowhere(t, "with CONNECT of "+all, prepared)
	}
	for _, entry := range []string{w.Name, w.Name + ".transaction"} {
		l := stranger.Present(database.RuntimeLogin)
		agenttest.Refused(t, "a stranger at "+entry, s.Pooled(t, entry, l.Username, l.Password), "SELECT 1")
	}
	// A role that was admitted keeps what everybody has, and is shut as ever.
	check.Must(owner.Exec(onDatabase(revokeConnect, w, reader.Username)))(t)
	next := reader.Renewed()
	proof := agenttest.As[role.Proof](t, s.Done(t, reader.Rotate(2, next)))
	if proof.ConnectMissing || !proof.NewAccepted || !proof.OldRefused {
		t.Errorf("%+v", proof)
	}
	s.Done(t, next.Shut(role.Revocation, 3))
	s.GetsInNowhere(t, "revoked", next)
	soonRemoved(t, s, next, 4)
	soonRemoved(t, s, prepared, 2)
	s.NoOrphans(t)
}

// Who may pass CONNECT on, and has, is kept by that until the owner takes it back; so is whom it was given to. A stranger's role
// that it was given to is not.
func TestConnectThatARolePassesOn(t *testing.T) {
	s, w, reader, custom, prepared := legacyStack(t)
	owner, theirs := s.Owner(t, w), s.Direct(t, w.Name, custom.Username, custom.Password)
	stranger := s.MadeWithRoles(t, database.SingleLogin)
	guest := s.Opened(t, stranger.Additional(1, role.ReadOnly))
	oid := oidOf(t, s, guest)
	check.Must(owner.Exec(onDatabase(passConnect, w, custom.Username)))(t)
	check.Must(owner.Exec(onDatabase(revokeConnect, w, reader.Username)))(t)
	for _, to := range []string{reader.Username, prepared.Username, guest.Username, "PUBLIC"} {
		check.Must(theirs.Exec(onDatabase(grantConnect, w, to)))(t)
	}
	s.Done(t, prepared.Open(1))
	s.GetsIn(t, "with CONNECT of another role's", prepared)
	agenttest.Refused(t, "a guest, pooled", s.Pooled(t, w.Name, guest.Username, guest.Password), "SELECT 1")
	s.Done(t, guest.Rotate(2, guest.Renewed()))
	soonRemoved(t, s, guest, 3) // by the stranger, who is told nothing, and need not wait
	noDead(t, s, oid)

	if _, err := owner.Exec(onDatabase(revokeConnect, w, custom.Username)); agenttest.SQLState(err) != "2BP01" {
		t.Errorf("the owner takes back what was passed on: %v", err)
	}
	named := agenttest.Quoted(w.Name)
	kept := role.Dependency{Kind: "grant", ObjectType: "database", Name: named, Identity: named, Grantor: custom.Username}
	s.Done(t, custom.Shut(role.Revocation, 2))
	s.GetsInNowhere(t, "revoked", custom)
	for _, l := range []agenttest.LoginOf{custom, reader} {
		if found := s.Removed(t, l.Remove(s.NextGeneration())); len(found.List) != 1 || found.List[0] != kept {
			t.Errorf("%s: %+v", l.Username, found)
		}
		s.GetsInNowhere(t, "kept", l)
	}
	check.Must(owner.Exec("DROP OWNED BY " + reader.Username))(t)
	if found := s.Removed(t, reader.Remove(s.NextGeneration())); len(found.List) != 1 {
		t.Errorf("DROP OWNED took what another role granted: %+v", found)
	}
	check.Must(owner.Exec("DROP OWNED BY " + custom.Username))(t)
	getsInNowhereDirectly(t, s, prepared)
	for _, l := range []agenttest.LoginOf{custom, reader, prepared} {
		soonRemoved(t, s, l, s.NextGeneration())
	}
	s.NoOrphans(t)
}

// The owner has no power over the groups, nor over its roles: what they are for, only the platform gives.
func TestOwnerHasNoPowerOverGroupsAndRoles(t *testing.T) {
	s, w, reader, custom, prepared := legacyStack(t)
	stranger := s.MadeWithRoles(t, database.SingleLogin)
	guest := s.Opened(t, stranger.Additional(1, role.Custom))
	owner := s.Owner(t, w)
	n, others := w.Names(), stranger.Names()
	for _, group := range []string{n.ReadGroup, n.WriteGroup, others.ReadGroup, reader.Username, prepared.Username, n.Holder} {
		for _, to := range []string{agenttest.Quoted(w.Name), custom.Username, guest.Username, agenttest.Quoted(stranger.Name)} {
			agenttest.Denied(t, "the owner", owner, fmt.Sprintf("GRANT %s TO %s", group, to))
		}
		for _, statement := range []string{
			"SET ROLE %s", "DROP ROLE %s", "DROP OWNED BY %s", "REASSIGN OWNED BY %s TO CURRENT_USER",
			"REASSIGN OWNED BY CURRENT_USER TO %s", "ALTER ROLE %s LOGIN PASSWORD 'x'", "ALTER ROLE %s SET work_mem = '1GB'",
			"ALTER TABLE things OWNER TO %s", "CREATE SCHEMA AUTHORIZATION %s",
			"ALTER DEFAULT PRIVILEGES FOR ROLE %s GRANT ALL ON TABLES TO PUBLIC", "COMMENT ON ROLE %s IS 'x'",
			"REVOKE %s FROM " + reader.Username,
		} {
			if group == others.ReadGroup && statement == "REVOKE %s FROM "+reader.Username {
				continue // it is no member, which is a warning
			}
			agenttest.Denied(t, "the owner", owner, fmt.Sprintf(statement, group))
		}
	}
	agenttest.Denied(t, "the owner", owner, fmt.Sprintf("GRANT %s TO %s", agenttest.Quoted(w.Name), custom.Username))
	check.Must(s.Pooled(t, w.Name, reader.Username, reader.Password).Exec("TABLE things"))(t)
}

// What the groups hold is the owner's to take. The roles are set up, changed and removed all the same. An opt-in that is repeated
// gives nothing back.
func TestOwnerTakesTheGroupsRights(t *testing.T) {
	s, w, reader, _, prepared := legacyStack(t)
	owner, n := s.Owner(t, w), w.Names()
	check.Must(owner.Exec(fmt.Sprintf(`REVOKE ALL ON things FROM %[1]s, %[2]s CASCADE;
		REVOKE ALL ON SCHEMA public FROM %[1]s, %[2]s; ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM %[1]s, %[2]s;
		ALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM %[1]s, %[2]s;
		ALTER DEFAULT PRIVILEGES REVOKE ALL ON SEQUENCES FROM %[1]s, %[2]s`, n.ReadGroup, n.WriteGroup)))(t)
	agenttest.Denied(t, "a reader", s.Direct(t, w.Name, reader.Username, reader.Password), "TABLE things")
	s.Connect(t, prepared)
	s.Done(t, prepared.Open(1))
	next := reader.Renewed()
	s.Done(t, reader.Rotate(2, next))
	s.GetsIn(t, "rotated", next)
	check.Must(owner.Exec("CREATE TABLE later (n int)"))(t)
	s.DoneInTheEnd(t, w.OptIn()) // gives nothing back
	for _, table := range []string{"things", "later"} {
		agenttest.Denied(t, "a reader", s.Direct(t, w.Name, next.Username, next.Password), "TABLE "+table)
		agenttest.Denied(t, "a writer", s.Direct(t, w.Name, prepared.Username, prepared.Password), "INSERT INTO "+table+" VALUES (1)")
	}
	s.Done(t, next.Shut(role.Revocation, 3))
	soonRemoved(t, s, next, 4)
	soonRemoved(t, s, prepared, 2)
}

// A custom role that the owner lets make things has them keep it, and gives to its like and to the groups what is its own.
func TestRoleThatMakesThingsForOthers(t *testing.T) {
	s, w, reader, custom, _ := legacyStack(t)
	owner, n := s.Owner(t, w), w.Names()
	check.Must(owner.Exec(fmt.Sprintf(`GRANT CREATE ON DATABASE %q TO %s;
		GRANT SELECT ON things TO %[2]s WITH GRANT OPTION`, w.Name, custom.Username)))(t)
	theirs := s.Direct(t, w.Name, custom.Username, custom.Password)
	check.Must(theirs.Exec(fmt.Sprintf(`CREATE SCHEMA theirs; CREATE TABLE theirs.own (n int);
		GRANT USAGE ON SCHEMA theirs TO %[1]s; GRANT ALL ON theirs.own TO %[1]s, %[2]s; GRANT SELECT ON things TO %[3]s;
		ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO %[1]s, %[2]s`, n.ReadGroup, n.WriteGroup, reader.Username)))(t)
	check.Must(s.Direct(t, w.Name, reader.Username, reader.Password).Exec("TABLE theirs.own"))(t)
	s.DoneInTheEnd(t, w.OptIn()) // what is not the owner's it leaves
	// Its grant keeps the other role, too; the owner takes it back with what that came from.
	if found := s.Removed(t, reader.Remove(2)); len(found.List) != 1 || found.List[0].Name != "things" {
		t.Errorf("%+v", found)
	}
	s.Done(t, custom.Shut(role.Revocation, 2)) // what it has granted of "things" is an entry of its own
	if found := s.Removed(t, custom.Remove(3)); len(found.List) != 6 {
		t.Errorf("%d: %+v", len(found.List), found)
	}
	check.Must(owner.Exec("REVOKE ALL ON things FROM " + custom.Username + " CASCADE"))(t)
	soonRemoved(t, s, reader, 3)
	check.Must(owner.Exec(fmt.Sprintf("REASSIGN OWNED BY %s TO CURRENT_USER; DROP OWNED BY %[1]s", custom.Username)))(t)
	check.Must(owner.Exec(fmt.Sprintf("REVOKE CREATE ON DATABASE %q FROM %s", w.Name, custom.Username)))(t)
	soonRemoved(t, s, custom, 4)
	check.Must(owner.Exec("TABLE theirs.own"))(t)
	s.NoOrphans(t)
}
