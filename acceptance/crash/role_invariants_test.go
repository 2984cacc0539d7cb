package crash_test

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// roleRow is an additional role as the metadata have it. Columns are texts as PostgreSQL writes them. Only of a ready role the
// end of validity counts, since cases let time pass by moving it.
type roleRow struct{ id, username, status, profile, limit, verifier, generation, expires string }

// ready reports whether the role may log in.
func (r roleRow) ready() bool { return r.status == string(role.Ready) }

// enabled says of each login whether it may log in while its database is active.
func (d databaseRow) enabled() map[string]bool {
	enabled := map[string]bool{}
	for _, l := range d.logins() {
		enabled[l] = true
	}
	for _, r := range d.additional {
		enabled[r.username] = r.ready()
	}
	return enabled
}

// additionalRoles reads the roles that stand on their servers, by database. Where nobody works, a role is at rest, or half made
// because a case has left it there. What stands of a reserved one nobody knows: it has a row in the ledger, or none.
func (w *world) additionalRoles(t testing.TB) map[string][]roleRow {
	t.Helper()
	marked := map[string]bool{}
	for _, name := range column(t, w.maintenance, "SELECT name FROM ledger.role WHERE part = 'additional'") {
		marked[name] = true
	}
	const query = `SELECT database_id, id, username, status, access_profile, connection_limit::text, verifier,
		credential_generation::text, CASE status WHEN 'ready' THEN extract(epoch FROM credential_expires_at)::text END,
		change_id::text FROM roles WHERE status <> 'removed'`
	present := map[string][]roleRow{}
	for _, row := range rows(t, w.meta, query) {
		r := roleRow{row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8]}
		atRest := []string{string(role.Ready), string(role.Revoked), string(role.Expired), string(w.unfinished[id.RoleID(r.id)])}
		if !slices.Contains(atRest, r.status) || row[9] != "" {
			t.Errorf("role %s is %s with change %q although nobody works on it", r.username, r.status, row[9])
		}
		if r.status != string(role.Reserved) || marked[r.username] {
			present[row[0]] = append(present[row[0]], r)
		}
	}
	return present
}

// checkLogins compares each login on the server with the metadata: password, end of validity, limit, group, row of the ledger.
func (w *world) checkLogins(t testing.TB, known []databaseRow) {
	t.Helper()
	want := map[string]bool{}
	for _, row := range rows(t, w.meta, "SELECT username, verifier, generation::text FROM database_logins") {
		want[describeLogin(row[0], row[1], "", "", "", "true", row[2])] = true
	}
	for _, d := range known {
		for _, r := range d.additional {
			want[r.describe(d)] = true
		}
	}
	passwords := map[string][]string{}
	const query = `SELECT a.rolname, a.rolpassword,
		CASE WHEN a.rolcanlogin THEN extract(epoch FROM nullif(a.rolvaliduntil, 'infinity'))::text END,
		nullif(a.rolconnlimit, -1)::text, groups.names
		FROM pg_authid a LEFT JOIN (SELECT m.member, string_agg(g.rolname, ' ') AS names
			FROM pg_auth_members m JOIN pg_authid g ON g.oid = m.roleid
			WHERE m.inherit_option AND g.rolname ~ '_g(ro|rw)$' GROUP BY 1) groups ON groups.member = a.oid`
	for _, row := range rows(t, w.server, query) {
		passwords[row[0]] = row[1:]
	}
	var found []string
	const marks = `SELECT name, part, enabled::text, greatest(credential_generation, 1)::text FROM ledger.role
		WHERE part IN ('owner', 'runtime', 'readonly', 'additional')`
	for _, row := range rows(t, w.maintenance, marks) {
		has, present := passwords[row[0]]
		if !present {
			continue // which checkServer tells
		}
		if row[1] != "additional" {
			has[1], has[2], has[3] = "", "", "" // the limits of a login that came with the database are the database's
		}
		found = append(found, describeLogin(row[0], has[0], has[1], has[2], has[3], row[2], row[3]))
	}
	w.same(t, "logins", want, found)
}

func describeLogin(name, verifier, expires, limit, group, enabled, generation string) string {
	return fmt.Sprintf("%s: password %.60q, until %q, limit %q, group %q, enabled %s, generation %s",
		name, verifier, expires, limit, group, enabled, generation)
}

// describe is how the role stands on the server. PostgreSQL's own limit is five above the pooler's.
func (r roleRow) describe(d databaseRow) string {
	names := database.RoleNames(id.DatabaseID(d.id), d.name)
	group := map[string]string{"read_only": names.ReadGroup, "read_write": names.WriteGroup}[r.profile]
	var limit int
	_, _ = fmt.Sscan(r.limit, &limit) // an integer column
	verifier := r.verifier
	if r.status == string(role.Reserved) || r.status == string(role.SQLReady) {
		verifier, group = "", ""
	}
	return describeLogin(r.username, verifier, r.expires, fmt.Sprint(limit+5), group, fmt.Sprint(r.ready()), r.generation)
}

// checkLimits compares PgBouncer's lines of logins, and what it goes by, with the metadata. A login without a limit has no line,
// and PgBouncer need not know it.
func (w *world) checkLimits(t testing.TB, known []databaseRow) {
	t.Helper()
	want := map[string]bool{}
	limits := map[string]string{}
	for _, d := range known {
		for _, l := range d.logins() {
			limits[l] = "0"
		}
		for _, r := range d.additional {
			limits[r.username] = r.limit
			want[r.username+" = max_user_connections="+r.limit] = true
		}
	}
	w.sameSoon(t, "PgBouncer's lines of logins", want, func() []string { return w.poolerLines(t) })
	shown := w.shownLimits(t)
	for name, limit := range limits {
		if got := cmp.Or(shown[name], "0"); got != limit {
			t.Errorf("PgBouncer lets %s have %q connections, want %s", name, got, limit)
		}
	}
}

// shownLimits are the limits of logins that PgBouncer goes by. It never forgets one that was removed.
func (w *world) shownLimits(t testing.TB) map[string]string {
	t.Helper()
	names, found, err := stack.Rows(t.Context(), w.console, "SHOW USERS")
	noError(t, err)
	limits := map[string]string{}
	for _, row := range found {
		limits[row[slices.Index(names, "name")]] = row[slices.Index(names, "max_user_connections")]
	}
	return limits
}

// poolerLines are the lines of logins of the files that PgBouncer would start with.
func (w *world) poolerLines(t testing.TB) (lines []string) {
	t.Helper()
	main := must(os.ReadFile(filepath.Join(w.PoolerDir(), "pgbouncer.ini")))(t)
	for line := range strings.Lines(string(main)) {
		file, included := strings.CutPrefix(strings.TrimSpace(line), "%include ")
		if !included || !strings.Contains(file, "users-") {
			continue
		}
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) { // it has just been replaced
			return w.poolerLines(t)
		}
		noError(t, err)
		for entry := range strings.Lines(string(text)) {
			if strings.Contains(entry, "=") {
				lines = append(lines, strings.TrimSpace(entry))
			}
		}
	}
	return lines
}

// checkChanges looks that the agent has carried out each completed change once, as one command.
func (w *world) checkChanges(t testing.TB) {
	t.Helper()
	times := map[string]int{}
	for _, operation := range column(t, w.maintenance, "SELECT operation_id FROM ledger.command WHERE result IS NOT NULL") {
		times[operation]++
	}
	for _, row := range rows(t, w.meta, "SELECT id, kind, username FROM role_changes WHERE status = 'completed'") {
		if n := times[row[0]]; n != 1 {
			t.Errorf("%s of %s is completed, and the agent has done it %d times", row[1], row[2], n)
		}
	}
}

// wrongRoleRecords go on with wrongRecords. Every intent takes one generation of the role set, and every completed rotation one
// of the password; what the agent has proven stands in the one audit entry of a change.
var wrongRoleRecords = map[string]string{
	"generation of a role set": `SELECT d.name, d.role_generation, d.role_ordinal FROM databases d
		WHERE d.role_generation <> (SELECT count(*) FROM roles r WHERE r.database_id = d.id)
			+ (SELECT count(*) FROM role_changes c WHERE c.database_id = d.id) + (d.overlay_generation > 0)::int
		OR d.role_ordinal <> (SELECT count(*) FROM roles r WHERE r.database_id = d.id)`,
	"generation of a role's password": `SELECT r.username, r.credential_generation FROM roles r WHERE r.credential_generation <> 1
		+ (SELECT count(*) FROM role_changes c WHERE c.role_id = r.id AND c.kind = 'rotate' AND c.status = 'completed')`,
	"generation of a login's password": `SELECT l.username, l.generation FROM database_logins l WHERE l.generation <> 1
		+ (SELECT count(*) FROM role_changes c WHERE c.database_id = l.database_id AND c.login = l.login AND c.status = 'completed')`,
	"audit of a new role": `SELECT r.username, r.status, count(a.id) FROM roles r LEFT JOIN audit_entries a
		ON a.database_id = r.database_id AND a.details->>'roleId' = r.id::text AND a.action = 'role.created'
		GROUP BY r.id HAVING count(a.id) <> 1 AND r.status IN ('ready', 'expired') OR count(a.id) > 1`,
	"overlay": `SELECT d.name, d.overlay_status, d.overlay_generation, count(a.id) FROM databases d
		LEFT JOIN audit_entries a ON a.database_id = d.id AND a.action = 'legacy_roles.opted_in'
		AND a.details->>'overlayId' = d.overlay_id::text GROUP BY d.id
		HAVING count(a.id) <> (d.overlay_status = 'active')::int OR (d.overlay_generation > 0) <> (d.overlay_status = 'active')`,
	"audit of a change": `SELECT c.username, c.kind, c.id, count(a.id) FROM role_changes c LEFT JOIN audit_entries a
		ON a.database_id = c.database_id AND a.details->>'operationId' = c.id::text
		AND a.action = CASE WHEN c.login <> '' THEN 'login.rotated' WHEN c.kind = 'rotate' THEN 'role.rotated'
			WHEN c.kind = 'revoke' THEN 'role.revoked' WHEN c.kind = 'expire' THEN 'role.expired' ELSE 'role.removed' END
		AND (c.kind = 'remove' OR a.details->>'noneLeft' = 'true' AND a.details->>'oldRefused' = 'true')
		WHERE c.status = 'completed' GROUP BY c.id HAVING count(a.id) <> 1`,
	"audit of no change": `SELECT a.action, a.details FROM audit_entries a LEFT JOIN role_changes c
		ON c.database_id = a.database_id AND c.id::text = a.details->>'operationId' AND c.status <> 'pending'
		WHERE a.action IN ('login.rotated', 'role.rotated', 'role.revoked', 'role.expired', 'role.removed') AND c.id IS NULL`,
	"password of a change that has ended": `SELECT username, kind, status FROM role_changes
		WHERE status <> 'pending' AND (sealed IS NOT NULL OR verifier <> '')`,
	"password told twice": `SELECT c.username, count(a.id) FROM role_changes c JOIN audit_entries a
		ON a.database_id = c.database_id AND a.action = 'login.revealed' AND a.details->>'login' = 'owner'
		AND a.details->>'credentialGeneration' = c.credential_generation::text
		WHERE c.login = 'owner' AND c.status = 'completed' GROUP BY c.id HAVING count(a.id) > 1`,
}
