package crash_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/backupfiles"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// quiet waits until nobody has anything left to do.
func (w *world) quiet(t testing.TB) {
	t.Helper()
	eventually(t, "the work is finished", func() (bool, string) {
		var open string
		err := w.meta.QueryRowContext(t.Context(), stack.Unfinished).Scan(&open)
		return err == nil && open == "", fmt.Sprint(open, " ", err)
	})
}

// settled waits until the work is finished, then compares all that exists with what the metadata say: not one thing more, not
// one less.
func (w *world) settled(t testing.TB) {
	t.Helper()
	w.asRecorded(t)
	stacktest.WantHealthy(t, w)
}

// asRecorded is settled without the doctor's look.
func (w *world) asRecorded(t testing.TB) {
	t.Helper()
	w.quiet(t)
	w.swept(t)
	known := w.databases(t)
	w.checkServer(t, known)
	w.checkGates(t, known)
	w.checkPooler(t, known)
	w.checkLogins(t, known)
	w.checkLimits(t, known)
	w.checkFiles(t)
	w.checkRecords(t)
	w.checkChanges(t)
}

// databaseRow is a database as the metadata have it, with the additional roles that stand on its server.
type databaseRow struct {
	id, name, model, status string
	overlay                 database.OverlayStatus
	additional              []roleRow
}

func (d databaseRow) logins() []string {
	names := database.RoleNames(id.DatabaseID(d.id), d.name)
	var logins []string
	for _, l := range database.RoleModel(d.model).Logins() {
		logins = append(logins, names.Of(l))
	}
	return logins
}

func (d databaseRow) roles() []string {
	names := database.RoleNames(id.DatabaseID(d.id), d.name)
	roles := append(d.logins(), names.Holder)
	for _, r := range d.additional {
		roles = append(roles, r.username)
	}
	if database.RoleModel(d.model) == database.Managed || d.overlay == database.OverlayActive {
		roles = append(roles, names.ReadGroup, names.WriteGroup)
	}
	return roles
}

// deleted reports whether the database is out of service, and may be recovered.
func (d databaseRow) deleted() bool { return d.status == string(database.Deleted) }

// stands is the name that it has in PostgreSQL.
func (d databaseRow) stands() string {
	if d.deleted() {
		return "deleted_" + strings.ReplaceAll(d.id, "-", "")
	}
	return d.name
}

// databases reads the metadata. Where nobody works, a database is active, stopped or deleted.
func (w *world) databases(t testing.TB) []databaseRow {
	t.Helper()
	var known []databaseRow
	additional := w.additionalRoles(t)
	for _, row := range rows(t, w.meta, "SELECT id, name, role_model, status, overlay_status FROM databases") {
		d := databaseRow{row[0], row[1], row[2], row[3], database.OverlayStatus(row[4]), additional[row[0]]}
		if !d.deleted() && d.status != string(database.Active) && d.status != string(database.Stopped) {
			t.Errorf("database %s is %s although nobody works on it", d.name, d.status)
		}
		if d.overlay == database.OverlayReserved {
			t.Errorf("the opt-in of %s is unfinished although its caller has asked again", d.name)
		}
		known = append(known, d)
	}
	return known
}

// checkServer compares PostgreSQL's databases and roles, and the agent's ledger, with the metadata.
func (w *world) checkServer(t testing.TB, known []databaseRow) {
	t.Helper()
	databases, ledger, roles, open := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, d := range known {
		databases[d.stands()], ledger[d.name] = true, true
		for _, r := range d.roles() {
			roles[r] = true
		}
		for l, enabled := range d.enabled() {
			open[l] = enabled && d.status == string(database.Active)
		}
	}
	w.same(t, "databases of PostgreSQL", databases, column(t, w.server, `SELECT datname FROM pg_database
		WHERE NOT datistemplate AND datname NOT IN ('postgres', 'pgherd_maintenance')`))
	w.same(t, "roles of PostgreSQL", roles, column(t, w.server, `SELECT rolname FROM pg_roles
		WHERE rolname !~ '^(pg|pgherd)_' AND rolname <> 'postgres'`))
	w.same(t, "databases of the ledger", ledger, column(t, w.maintenance, "SELECT name FROM ledger.database"))
	w.same(t, "roles of the ledger", roles, column(t, w.maintenance, "SELECT name FROM ledger.role"))
	for _, row := range rows(t, w.server, "SELECT rolname, rolcanlogin FROM pg_roles WHERE rolname !~ '^(pg|pgherd)_'") {
		if may := row[1] == "true"; !w.foreign[row[0]] && row[0] != "postgres" && may != open[row[0]] {
			t.Errorf("role %s: LOGIN is %t, want %t", row[0], may, open[row[0]])
		}
	}
}

// checkGates looks that the pooler lets in exactly the logins of active databases.
func (w *world) checkGates(t testing.TB, known []databaseRow) {
	t.Helper()
	gates := map[string]bool{}
	for _, d := range known {
		for l, enabled := range d.enabled() {
			gates[fmt.Sprint(l, " at ", d.name, " open ", enabled && d.status == string(database.Active))] = true
		}
	}
	const query = "SELECT format('%s at %s open %s', login, database, open::text) FROM pooler.gate"
	w.same(t, "gates", gates, column(t, w.maintenance, query))
}

// checkPooler asks PgBouncer itself for its entries.
func (w *world) checkPooler(t testing.TB, known []databaseRow) {
	t.Helper()
	entries := map[string]bool{}
	for _, d := range known {
		if !d.deleted() {
			entries[d.name], entries[d.name+".transaction"] = true, true
		}
	}
	w.sameSoon(t, "entries of PgBouncer", entries, func() (found []string) {
		for _, row := range rows(t, w.console, "SHOW DATABASES") {
			if row[0] != "pgbouncer" && !strings.HasPrefix(row[0], "pgherd_") {
				found = append(found, row[0])
			}
		}
		return found
	})
}

// sameSoon waits while the agent collects what PgBouncer is to hear of things that are gone, and while their entries linger.
func (w *world) sameSoon(t testing.TB, what string, want map[string]bool, find func() []string) {
	t.Helper()
	found := find()
	leftOver := func(name string) bool { return !want[name] && !w.foreign[name] }
	for end := time.Now().Add(3 * pooler.SoonTime); slices.ContainsFunc(found, leftOver) && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
		found = find()
	}
	w.same(t, what, want, found)
}

// checkFiles looks that each listed backup is there, whole, with its companions, and that nothing else is, but, for a day, in an
// object store, what an attempt at a listed backup has left that was killed.
func (w *world) checkFiles(t testing.TB) {
	t.Helper()
	want, stems := map[string]bool{}, map[string]bool{}
	for _, row := range rows(t, w.meta, "SELECT database_id, filename, checksum_sha256, verified_at IS NOT NULL FROM backups") {
		set := must(w.BackupSet(soon(t), id.DatabaseID(row[0]), backup.Filename(row[1])))(t)
		parts := []string{backupfiles.Record, backupfiles.Data, backupfiles.Schema, backupfiles.Manifest}
		if row[3] == "true" {
			parts = append(parts, backupfiles.Verified)
		}
		for _, part := range parts {
			path, err := set.Path(part)
			if err != nil {
				t.Error(err)
				continue
			}
			want[filepath.Join(row[0], filepath.Base(path))] = true
		}
		stems[filepath.Join(row[0], backup.Filename(row[1]).Stem())] = w.store != nil
		text, err := set.Read(backupfiles.Data)
		if sum := sha256.Sum256(text); err != nil || hex.EncodeToString(sum[:]) != row[2] {
			t.Errorf("backup %s of %s is not the file that is listed: %v", row[1], row[0], err)
		}
	}
	w.same(t, "files of backups", want, slices.DeleteFunc(w.files(t), func(path string) bool {
		stem, ending, _ := strings.Cut(path, ".")
		return !want[path] && stems[stem] && "."+ending != backupfiles.Record
	}))
}

// files are those of the agent, and the blobs of backups, but not what it stores for itself, nor snapshots of the metadata.
func (w *world) files(t testing.TB) (found []string) {
	t.Helper()
	dirs := []string{w.BackupDir(), w.BlobDir()}
	for _, dir := range slices.Compact(dirs) {
		noError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // there is no blob yet, or what went meanwhile was no backup's
				return nil
			}
			relative, _ := filepath.Rel(dir, path)
			if relative == "archive" || relative == store.SnapshotFolder {
				return fs.SkipDir
			}
			if err == nil && !e.IsDir() && relative != "owner" && !strings.HasPrefix(filepath.Base(path), "try.") {
				found = append(found, relative)
			}
			return err
		}))
	}
	return found
}

// wrongRecords are looks at the metadata that must find nothing: each final outcome has its one audit entry and its one event.
var wrongRecords = map[string]string{
	"event of no outcome": `SELECT e.name, e.operation_id FROM outbox_events e JOIN operations o ON o.id = e.operation_id
		WHERE e.name <> o.kind || '.' || o.status`,
	"audit of a database": `SELECT d.name, count(a.id) FROM databases d
		LEFT JOIN audit_entries a ON a.database_id = d.id AND a.action = 'database.created' GROUP BY d.id HAVING count(a.id) <> 1`,
	"audit of a create": `SELECT o.id, o.status, o.error_text, count(a.id) FROM operations o LEFT JOIN audit_entries a
		ON a.database_id = o.database_id AND a.action IN ('database.created', 'database.create_failed')
		WHERE o.kind = 'create' AND o.error_text NOT LIKE '%nothing was made' GROUP BY o.id HAVING count(a.id) <> 1`,
	"audit of a lifecycle action": `WITH done AS (SELECT database_id, CASE input->>'action' WHEN 'stop' THEN 'database.stopped'
		WHEN 'start' THEN 'database.started' ELSE 'database.restarted' END AS action FROM operations
		WHERE kind = 'lifecycle' AND status = 'succeeded')
		SELECT d.database_id, d.action, count(*) FROM done d GROUP BY 1, 2 HAVING count(*) <>
		(SELECT count(*) FROM audit_entries a WHERE a.database_id = d.database_id AND a.action = d.action)`,
	"audit of query timeouts": `SELECT o.id, o.status, count(a.id) FROM operations o LEFT JOIN audit_entries a
		ON a.database_id = o.database_id AND a.details->>'operationId' = o.id::text
		AND a.action = CASE o.status WHEN 'succeeded' THEN 'query_timeouts.changed' ELSE 'query_timeouts.change_failed' END
		WHERE o.kind = 'query_timeout' GROUP BY o.id HAVING count(a.id) <> 1`,
	"audit of a backup": `SELECT o.id, o.status, count(a.id) FROM operations o LEFT JOIN audit_entries a
		ON a.database_id = o.database_id AND a.details->>'operationId' = o.id::text
		AND a.action = CASE o.status WHEN 'canceled' THEN 'operation.canceled' ELSE 'backup.finished' END
		WHERE o.kind = 'backup' GROUP BY o.id HAVING count(a.id) <> 1`,
	"audit of a restore": `SELECT o.id, o.status, count(*) FILTER (WHERE a.action = 'restore.requested'),
		count(*) FILTER (WHERE a.action IN ('restore.finished', 'operation.canceled'))
		FROM operations o LEFT JOIN audit_entries a ON a.database_id = o.database_id AND a.details->>'operationId' = o.id::text
		AND (a.action = 'restore.requested' OR a.action = CASE o.status WHEN 'canceled' THEN 'operation.canceled'
			ELSE 'restore.finished' END AND coalesce(a.details->>'status', o.status) = o.status)
		WHERE o.kind = 'restore' GROUP BY o.id HAVING count(*) FILTER (WHERE a.action = 'restore.requested') <> 1 OR count(*) <> 2`,
	"audit of an extension": `SELECT o.id, o.status, count(a.id) FROM operations o LEFT JOIN audit_entries a
		ON a.database_id = o.database_id AND a.details->>'operationId' = o.id::text
		AND a.action = CASE o.status WHEN 'canceled' THEN 'operation.canceled' ELSE 'extension.finished' END
		WHERE o.kind = 'extension' GROUP BY o.id HAVING count(a.id) <> 1`,
	"audit of a deleted backup": `SELECT o.id, count(a.id) FROM operations o LEFT JOIN audit_entries a
		ON a.database_id = o.database_id AND a.details->>'filename' = o.result->>'filename'
		AND a.action IN ('backup.deleted', 'backup.expired') AND a.at > o.created_at -- a name is free again after a deletion
		WHERE o.kind = 'backup' AND o.status = 'succeeded' GROUP BY o.id
		HAVING count(a.id) <> CASE WHEN EXISTS (SELECT FROM backups b WHERE b.operation_id = o.id) THEN 0 ELSE 1 END`,
	"audit of an allowlist": `SELECT d.name, count(a.id) FROM databases d
		JOIN audit_entries a ON a.database_id = d.id AND a.action LIKE 'allowlist.%' GROUP BY d.id
		HAVING sum(CASE a.action WHEN 'allowlist.added' THEN 1 ELSE -1 END) <>
		(SELECT count(*) FROM allowlist_entries e WHERE e.database_id = d.id)`,
	"backup without its operation": `SELECT b.filename FROM backups b LEFT JOIN operations o ON o.id = b.operation_id
		WHERE o.id IS NULL OR o.status NOT IN ('succeeded', 'failed')`,
}

// wrongEvents is such a look, too: operations of public kinds have an event, others have none.
func wrongEvents(t testing.TB) map[string]string {
	t.Helper()
	var public []string
	for _, k := range kinds(t).Public() {
		public = append(public, "'"+string(k)+"'")
	}
	return map[string]string{"event of an operation": `SELECT o.kind, o.status, o.id, count(e.id) FROM operations o
		LEFT JOIN outbox_events e ON e.operation_id = o.id AND e.name = o.kind || '.' || o.status
		GROUP BY o.id HAVING count(e.id) <> CASE WHEN o.kind IN (` + strings.Join(public, ", ") + `) THEN 1 ELSE 0 END`}
}

func (w *world) checkRecords(t testing.TB) {
	t.Helper()
	for _, looks := range []map[string]string{wrongRecords, wrongEvents(t), wrongRoleRecords} {
		for _, what := range slices.Sorted(maps.Keys(looks)) {
			for _, row := range rows(t, w.meta, looks[what]) {
				t.Errorf("%s: %s", what, strings.Join(row, ", "))
			}
		}
	}
}

// same fails the test where the two sets differ in anything that the test did not make itself.
func (w *world) same(t testing.TB, what string, want map[string]bool, found []string) {
	t.Helper()
	missing := maps.Clone(want)
	for _, name := range found {
		if !want[name] && !w.foreign[name] {
			t.Errorf("%s: %s is left over", what, name)
		}
		delete(missing, name)
	}
	for name := range missing {
		t.Errorf("%s: %s is missing", what, name)
	}
}

func column(t testing.TB, db *sql.DB, query string) []string {
	t.Helper()
	return must(stack.Column(t.Context(), db, query))(t)
}

// rows runs a query without arguments, which PgBouncer's console understands too.
func rows(t testing.TB, db *sql.DB, query string) [][]string {
	t.Helper()
	_, found, err := stack.Rows(t.Context(), db, query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return found
}
