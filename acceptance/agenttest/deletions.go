package agenttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
)

// Isolating is the command that takes the database out of service.
func (w Wanted) Isolating(operation string) protocol.Command {
	return Told(operation, 1, command.Isolate{DatabaseID: w.DatabaseID()})
}

// Rejoining is the command that brings it back, open.
func (w Wanted) Rejoining(operation string) protocol.Command {
	return Told(operation, 1, command.Rejoin{DatabaseID: w.DatabaseID(), Open: true})
}

// Purging is the command that removes it for good.
func (w Wanted) Purging(operation string) protocol.Command {
	return Told(operation, 1, command.Purge{DatabaseID: w.DatabaseID()})
}

const LastName = "20260309_120000.sql.gz"

// LastBackup makes the file that a deletion needs.
func (w Wanted) LastBackup(operation string) protocol.Command {
	return Told(operation, 1, command.Backup{
		DatabaseID: w.DatabaseID(), Filename: backup.Filename(LastName), Verify: true, ForDeletion: true,
	})
}

// IsolatedName is what the database is called while it is out of service.
func (w Wanted) IsolatedName() string { return "deleted_" + Compact(w.ID) }

// Deleted deletes a database as a control plane does, and returns the operation.
func (s *Stack) Deleted(t testing.TB, w Wanted, generation int64) (operation string) {
	t.Helper()
	operation = NewUUID()
	s.Done(t, w.Access(generation, false, true))
	s.WantBackup(t, w.LastBackup(operation), command.BackupDone, "")
	s.Done(t, w.Isolating(operation))
	return operation
}

// IsIsolated demands that a database is out of service, and each of what keeps everybody out of it.
func (s *Stack) IsIsolated(t testing.TB, when string, w Wanted) {
	t.Helper()
	const open = `SELECT concat_ws(', ', (SELECT 'the database' FROM ledger.database WHERE id = $1 AND (open OR isolated <> $3)),
		(SELECT 'the ledger' WHERE NOT EXISTS (SELECT FROM ledger.database WHERE id = $1)),
		(SELECT 'its name' FROM pg_database WHERE datname = $2),
		(SELECT 'connections' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = $3 AND NOT datallowconn)),
		(SELECT 'gates' FROM pooler.gate WHERE database = $2 AND open LIMIT 1),
		(SELECT 'logins' FROM ledger.role l JOIN pg_roles r ON r.oid = l.oid WHERE l.database_id = $1 AND r.rolcanlogin LIMIT 1))`
	if found := s.One(t, open, w.ID, w.Name, w.IsolatedName()); found != "" {
		t.Errorf("%s, open are %s", when, found)
	}
	for _, l := range w.Model.Logins() {
		s.GetsInNowhere(t, when, w.Present(l))
		in := w.Present(l)
		in.Name = w.IsolatedName()
		s.GetsInNowhere(t, when+", by its other name", in)
	}
	check.Eventually(t, "PgBouncer has its entries", func() bool { return !strings.Contains(s.PoolerEntries(t), w.Name) })
}

// CatalogOf is what PostgreSQL, PgBouncer's gates and the ledger have of a database and its roles, whatever it is called.
func (s *Stack) CatalogOf(t testing.TB, w Wanted) string {
	t.Helper()
	return s.One(t, `WITH l AS (SELECT * FROM ledger.role WHERE database_id = $1)
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
			FROM pg_shdepend d WHERE d.dbid = (SELECT oid FROM ledger.database WHERE id = $1)))`, w.ID, w.Name)
}

// IsPurged demands that nothing of a database is left, but what operations were told, which is forgotten with them.
func (s *Stack) IsPurged(t testing.TB, w Wanted) {
	t.Helper()
	s.NoTrace(t, w)
	for _, of := range []string{"", "passing"} {
		if _, err := os.Stat(filepath.Join(s.Config.BackupDir, of, w.ID)); !os.IsNotExist(err) {
			t.Errorf("the folder of its backups: %v", err)
		}
	}
	check.Eventually(t, "something of it is left", func() bool {
		return s.One(t, `SELECT (SELECT count(*) FROM ledger.database WHERE id = $1)
			+ (SELECT count(*) FROM ledger.role WHERE database_id = $1)
			+ (SELECT count(*) FROM ledger.copy WHERE database_id = $1) + (SELECT count(*) FROM ledger.job WHERE database_id = $1)
			+ (SELECT count(*) FROM ledger.generation WHERE resource LIKE '%' || $1 || '%')
			+ (SELECT count(*) FROM ledger.command WHERE operation_id = '' AND resource LIKE '%' || $1 || '%')
			+ (SELECT count(*) FROM pooler.gate WHERE database = $2) + (SELECT count(*) FROM pooler.shut WHERE database = $2)
			+ (SELECT count(*) FROM pg_database WHERE datname LIKE '%' || $3)
			+ (SELECT count(*) FROM pg_roles WHERE rolname LIKE '%' || $3 || '%')
			+ (SELECT count(*) FROM pg_ls_dir($4, true, false) f WHERE f LIKE '%' || $1 || '%')`,
			w.ID, w.Name, Compact(w.ID), filepath.Join(s.Config.BackupDir, "uploads")) == "0"
	})
}
