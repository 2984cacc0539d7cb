package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

func (w wanted) isolating(operation string) protocol.Command {
	return told(operation, 1, command.Isolate{DatabaseID: w.databaseID()})
}

func (w wanted) rejoining(operation string) protocol.Command {
	return told(operation, 1, command.Rejoin{DatabaseID: w.databaseID(), Open: true})
}

func (w wanted) purging(operation string) protocol.Command {
	return told(operation, 1, command.Purge{DatabaseID: w.databaseID()})
}

const lastName = "20260309_120000.sql.gz"

// lastBackup makes the file that a deletion needs.
func (w wanted) lastBackup(operation string) protocol.Command {
	return told(operation, 1, command.Backup{
		DatabaseID: w.databaseID(), Filename: backup.Filename(lastName), Verify: true, ForDeletion: true,
	})
}

func (w wanted) isolatedName() string { return "deleted_" + compact(w.id) }

// deleted deletes a database as a control plane does, and returns the operation.
func (s *stack) deleted(t testing.TB, w wanted, generation int64) (operation string) {
	t.Helper()
	operation = newUUID()
	s.done(t, w.access(generation, false, true))
	s.wantBackup(t, w.lastBackup(operation), command.BackupDone, "")
	s.done(t, w.isolating(operation))
	return operation
}

// isIsolated demands that a database is out of service, and each of what keeps everybody out of it.
func (s *stack) isIsolated(t testing.TB, when string, w wanted) {
	t.Helper()
	const open = `SELECT concat_ws(', ', (SELECT 'the database' FROM ledger.database WHERE id = $1 AND (open OR isolated <> $3)),
		(SELECT 'the ledger' WHERE NOT EXISTS (SELECT FROM ledger.database WHERE id = $1)),
		(SELECT 'its name' FROM pg_database WHERE datname = $2),
		(SELECT 'connections' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = $3 AND NOT datallowconn)),
		(SELECT 'gates' FROM pooler.gate WHERE database = $2 AND open LIMIT 1),
		(SELECT 'logins' FROM ledger.role l JOIN pg_roles r ON r.oid = l.oid WHERE l.database_id = $1 AND r.rolcanlogin LIMIT 1))`
	if found := s.one(t, open, w.id, w.name, w.isolatedName()); found != "" {
		t.Errorf("%s, open are %s", when, found)
	}
	for _, l := range w.model.Logins() {
		s.getsInNowhere(t, when, w.present(l))
		in := w.present(l)
		in.name = w.isolatedName()
		s.getsInNowhere(t, when+", by its other name", in)
	}
	check.Eventually(t, "PgBouncer has its entries", func() bool { return !strings.Contains(s.poolerEntries(t), w.name) })
}

// catalogOf is what PostgreSQL, PgBouncer's gates and the ledger have of a database and its roles, whatever it is called.
func (s *stack) catalogOf(t testing.TB, w wanted) string {
	t.Helper()
	return s.one(t, `WITH l AS (SELECT * FROM ledger.role WHERE database_id = $1)
		SELECT concat_ws(E'\n', (SELECT to_jsonb(d) - 'rejoined_by' FROM ledger.database d WHERE id = $1),
		(SELECT string_agg(to_jsonb(l)::text, E'\n' ORDER BY oid) FROM l),
		(SELECT string_agg(to_jsonb(g)::text, E'\n' ORDER BY login) FROM pooler.gate g WHERE g.database = $2),
		(SELECT string_agg(to_jsonb(a)::text, E'\n' ORDER BY a.oid) FROM pg_authid a JOIN l ON l.oid = a.oid),
		(SELECT string_agg(to_jsonb(m)::text, E'\n' ORDER BY m.oid) FROM pg_auth_members m JOIN l ON l.oid IN (m.member, m.roleid)),
		(SELECT to_jsonb(p) - 'datname' - 'datfrozenxid' - 'datminmxid' FROM pg_database p JOIN ledger.database d ON d.oid = p.oid
			WHERE d.id = $1),
		(SELECT string_agg(to_jsonb(s)::text, E'\n' ORDER BY setdatabase, setrole) FROM pg_db_role_setting s
			WHERE s.setdatabase = (SELECT oid FROM ledger.database WHERE id = $1) OR s.setrole IN (SELECT oid FROM l)),
		(SELECT string_agg(to_jsonb(d)::text, E'\n' ORDER BY d.classid, d.objid, d.objsubid, d.refobjid, d.deptype)
			FROM pg_shdepend d WHERE d.dbid = (SELECT oid FROM ledger.database WHERE id = $1)))`, w.id, w.name)
}

// A database that comes back is what it was, to the byte: its data, its roles with their passwords and limits, grants, settings
// and allowlist. While it is out of service nobody gets in: not whoever was in, nor another account's login that the owner has
// let in, nor an administrator.
func TestADatabaseComesBackAsItWas(t *testing.T) {
	t.Parallel()
	s, w := databaseStack(t)
	first, second := s.opened(t, w.additional(1, role.Custom)), s.opened(t, w.additional(2, role.ReadWrite))
	revoked := s.opened(t, w.additional(3, role.ReadOnly))
	s.done(t, revoked.shut(role.Revocation, 2))
	stranger := s.made(t, database.SingleLogin)
	let := stranger.present(database.OwnerLogin)
	let.name = w.name
	check.Must(s.owner(t, w).Exec(fmt.Sprintf(furnishing, w.name, first.username, second.username)))(t)
	check.Must(s.owner(t, w).Exec(fmt.Sprintf(`GRANT CONNECT ON DATABASE %[1]q TO %[2]q; GRANT SELECT ON things TO %[2]q;
		ALTER ROLE %[1]q IN DATABASE %[1]q SET search_path = "$user", public, "a, ""b""";
		ALTER ROLE %[1]q SET work_mem = '7MB'`, w.name, stranger.name)))(t)
	s.done(t, w.configure(3, command.Configure{Timeouts: standard, ReadOnly: true}))
	s.done(t, w.allowlist(4, "127.0.0.0/8", "::1/128"))
	s.noOlderSessions(t, w)
	conns := s.connected(t, w)
	theirs := s.direct(t, w.name, stranger.name, let.password)
	check.Must(theirs.Exec("BEGIN; SELECT * FROM things"))(t)
	entries := s.poolerEntries(t)
	before, dump := s.catalogOf(t, w), s.dumped(t, w)

	operation := newUUID()
	s.done(t, w.isolating(operation))
	dead(t, "isolated", conns)
	refused(t, "whom the owner has let in", theirs, "SELECT 1")
	s.isIsolated(t, "isolated", w)
	s.getsInNowhere(t, "whom the owner has let in", let)
	let.name = w.isolatedName()
	s.getsInNowhere(t, "whom the owner has let in, by its other name", let)
	refused(t, "an administrator", open(t, s.pg.URL(w.isolatedName())), "SELECT 1")
	s.refusedFor(t, command.ReasonCompleted, closing(operation))
	s.done(t, w.isolating(operation))
	s.done(t, w.isolating(newUUID()))
	s.isIsolated(t, "isolated again", w)

	back := newUUID()
	if got := as[command.Rejoined](t, s.done(t, w.rejoining(back))); fmt.Sprint(got.DatabaseOID) != s.databaseOID(t, w) {
		t.Errorf("it came back as %d", got.DatabaseOID)
	}
	for _, l := range []loginOf{
		w.present(database.OwnerLogin), w.present(database.RuntimeLogin), w.present(database.ReadonlyLogin), first, second,
	} {
		s.getsIn(t, l.username, l)
	}
	s.getsInNowhere(t, "one that was revoked", revoked)
	s.shows(t, w.present(database.OwnerLogin), "statement_timeout", "1min")
	if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(s.catalogOf(t, w), "\n")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(strings.Split(dump, "\n"), strings.Split(s.dumped(t, w), "\n")); diff != "" {
		t.Error(diff)
	}
	of := func(entries string) (lines []string) {
		for line := range strings.Lines(entries) {
			if strings.Contains(line, w.name) {
				lines = append(lines, line)
			}
		}
		return lines
	}
	if diff := cmp.Diff(of(entries), of(s.poolerEntries(t))); diff != "" {
		t.Error(diff)
	}
	s.done(t, w.isolating(operation)) // which was done, and is not done again
	works(t, "after a command of before", s.pooledOwner(t, w))
	s.refusedFor(t, command.ReasonCompleted, closing(back))
}

// isolated takes a database out of service.
func (s *stack) isolated(t testing.TB, w wanted) (operation string) {
	t.Helper()
	operation = newUUID()
	s.done(t, w.isolating(operation))
	return operation
}

// The file of a deletion is its operation's until the database is isolated, and a backup like others from then on.
func TestTheFileOfADeletion(t *testing.T) {
	t.Parallel()
	s := realStack(t)
	w := s.filledDatabase(t)
	given := newUUID()
	s.wantBackup(t, w.lastBackup(given), command.BackupDone, "")
	s.done(t, closing(given))
	s.noFiles(t, w)
	s.refusedFor(t, command.ReasonClosed, w.isolating(given))
	s.getsIn(t, "a deletion that was given up", w.present(database.OwnerLogin))

	unlock, begun := s.lockThings(t, w), newUUID()
	s.done(t, w.lastBackup(begun))
	s.refusedFor(t, command.ReasonBusy, w.isolating(begun)) // which would keep what is not whole
	unlock()
	s.done(t, closing(begun))

	operation := s.deleted(t, w, 2)
	s.refusedFor(t, command.ReasonCompleted, closing(operation))
	if n := s.one(t, "SELECT count(*) FROM ledger.job WHERE database_id = $1", w.id); n != "0" {
		t.Errorf("%s jobs are left", n)
	}
	s.done(t, w.rejoining(newUUID()))
	from := told(newUUID(), 1, command.Load{
		DatabaseID: w.databaseID(), Compare: true,
		Source: command.Source{DatabaseID: w.databaseID(), Filename: backup.Filename(lastName)},
	})
	if report := s.loaded(t, from); report.State != command.LoadReady {
		t.Errorf("from the file: %+v", report)
	}
	s.done(t, closing(from.OperationID))
}
