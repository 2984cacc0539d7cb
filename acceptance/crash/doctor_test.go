package crash_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/id"
)

// damage is done by an administrator behind the service's back.
type damage struct {
	codes    []doctor.Code // what the doctor says
	repaired bool          // and whether --repair mends it
	do, undo func(t *testing.T)
}

// Whatever an administrator has changed is found. What can be repaired without losing anything is, and the rest is left as it is.
func TestTheDoctorFindsDamage(t *testing.T) {
	w := startStack(t)
	u := w.newUser(t, 10)
	made := u.create(t, w.api, "patient")
	w.settled(t)
	for _, repaired := range []bool{false, true} {
		var codes []doctor.Code
		var all []damage
		for _, d := range damages(t, w, made.ID, made.Name) {
			if d.repaired == repaired {
				all, codes = append(all, d), append(codes, d.codes...)
				d.do(t)
			}
		}
		w.wantDifferences(t, codes, nil)
		w.wantDifferences(t, codes, &repaired, "--repair")
		for _, d := range all {
			if !repaired {
				d.undo(t)
			}
		}
		w.settled(t)
	}
	w.lookedInto(t, made)
}

// lookedInto is what the doctor says of a look inside: what a customer has done is a notice, and what no customer can do is a
// difference. Neither is repaired.
func (w *world) lookedInto(t *testing.T, made wire.CreatedDatabase) {
	t.Helper()
	w.wantDifferences(t, nil, nil, "--deep")
	n, never := database.RoleNames(made.ID, made.Name), false
	owner := w.customer(t, made.ConnectionString)
	must(owner.ExecContext(t.Context(), fmt.Sprintf("REVOKE USAGE ON SCHEMA public FROM %q", n.WriteGroup)))(t)
	w.wantDifferences(t, []doctor.Code{doctor.GroupRights}, &never, "--deep", "--repair")
	w.wantDifferences(t, nil, nil)
	inside := stacktest.Open(t, w.Server.URL(made.Name))
	must(inside.ExecContext(t.Context(), "ALTER SCHEMA public OWNER TO pg_database_owner"))(t)
	w.wantDifferences(t, []doctor.Code{doctor.GroupRights, doctor.SchemaOwner}, &never, "--deep", "--repair")
	must(inside.ExecContext(t.Context(), fmt.Sprintf("ALTER SCHEMA public OWNER TO %q; GRANT USAGE ON SCHEMA public TO %q",
		n.Owner, n.WriteGroup)))(t)
	w.wantDifferences(t, nil, nil, "--deep")
}

// wantDifferences has the doctor find these, no more and no less. Where that is asked for, all are repaired, or none is.
func (w *world) wantDifferences(t *testing.T, want []doctor.Code, repaired *bool, flags ...string) {
	t.Helper()
	found, err := w.Doctor(soon(t), append(flags, "--patience", "100ms")...)
	noError(t, err)
	missing := map[doctor.Code]bool{}
	for _, c := range want {
		missing[c] = true
	}
	for _, d := range found {
		t.Logf("%s: %s", d.Code, d.Finding)
		code := doctor.Code(d.Code)
		if delete(missing, code); !slices.Contains(want, code) {
			t.Errorf("the doctor finds %s: %s", d.Code, d.Finding)
		}
		if mended := d.Outcome == "repaired"; repaired != nil && mended != *repaired {
			t.Errorf("%s: repaired is %t, want %t: %s", d.Code, mended, *repaired, d.Outcome)
		}
	}
	for c := range missing {
		t.Errorf("the doctor does not find %s", c)
	}
}

func damages(t *testing.T, w *world, db id.DatabaseID, name string) []damage {
	on := func(db *sql.DB) func(format string, args ...any) func(*testing.T) {
		return func(format string, args ...any) func(*testing.T) {
			return func(t *testing.T) {
				t.Helper()
				must(db.ExecContext(t.Context(), fmt.Sprintf(format, args...)))(t)
			}
		}
	}
	server, ledger := on(w.server), on(w.maintenance)
	n := database.RoleNames(db, name)
	backups := func(parts ...string) string {
		return filepath.Join(append([]string{w.BlobDir(), string(db)}, parts...)...)
	}
	const stem = "20200102_030405"
	const otherKey = "UPDATE ledger.database SET backup_key = set_byte(backup_key, 0, 255 - get_byte(backup_key, 0))" // and back
	limit := column(t, w.server, "SELECT datconnlimit::text FROM pg_database WHERE datname = '"+name+"'")[0]
	old := time.Now().Add(-48 * time.Hour)
	return []damage{
		{codes: []doctor.Code{doctor.LimitDiffers},
			do: server("ALTER DATABASE %q CONNECTION LIMIT 3", name), undo: server("ALTER DATABASE %q CONNECTION LIMIT %s", name, limit)},
		{codes: []doctor.Code{doctor.PublicRights, doctor.OwnerRights},
			do:   server("GRANT CONNECT ON DATABASE %q TO PUBLIC; REVOKE GRANT OPTION FOR CREATE ON DATABASE %[1]q FROM %[1]q", name),
			undo: server("REVOKE CONNECT ON DATABASE %q FROM PUBLIC; GRANT CREATE ON DATABASE %[1]q TO %[1]q WITH GRANT OPTION", name)},
		{codes: []doctor.Code{doctor.RolePowers},
			do: server("ALTER ROLE %q CREATEDB", n.Runtime), undo: server("ALTER ROLE %q NOCREATEDB", n.Runtime)},
		{codes: []doctor.Code{doctor.MembershipMissing, doctor.MembershipUnexpected, doctor.MemberUnexpected},
			do: server("REVOKE %q FROM %q GRANTED BY pgherd_agent; GRANT pg_read_all_data TO %[2]q; GRANT %q TO %q",
				n.WriteGroup, n.Runtime, n.Holder, n.Owner),
			undo: server("GRANT %q TO %q WITH INHERIT TRUE, SET FALSE GRANTED BY pgherd_agent;"+
				"REVOKE pg_read_all_data FROM %[2]q; REVOKE %q FROM %q",
				n.WriteGroup, n.Runtime, n.Holder, n.Owner)},
		{codes: []doctor.Code{doctor.RoleGone, doctor.MemberUnexpected},
			do: server("ALTER ROLE %q RENAME TO elsewhere", n.Readonly), undo: server("ALTER ROLE elsewhere RENAME TO %q", n.Readonly)},
		{codes: []doctor.Code{doctor.LoginDiffers}, repaired: true,
			do: server("ALTER ROLE %q NOLOGIN", n.Runtime)},
		{codes: []doctor.Code{doctor.GateDiffers}, repaired: true,
			do: ledger("UPDATE pooler.gate SET open = false WHERE database = '%s'", name)},
		{repaired: true, codes: []doctor.Code{doctor.AccessDiffers, doctor.GateDiffers, doctor.LoginDiffers},
			do: func(t *testing.T) {
				ledger("UPDATE pooler.gate SET open = false; UPDATE ledger.database SET open = false")(t)
				server("ALTER ROLE %q NOLOGIN; ALTER ROLE %q NOLOGIN; ALTER ROLE %q NOLOGIN", n.Owner, n.Runtime, n.Readonly)(t)
			}},
		{codes: []doctor.Code{doctor.SettingsDiffer, doctor.SettingDiffers}, repaired: true,
			do: ledger("UPDATE ledger.database SET timeouts = '{1000,1000,1000}'")},
		{codes: []doctor.Code{doctor.AllowlistDiffers, doctor.PoolerFiles}, repaired: true,
			do: ledger("UPDATE ledger.database SET networks = '{192.0.2.0/24}'")},
		{codes: []doctor.Code{doctor.PoolerFiles}, repaired: true, do: func(t *testing.T) {
			files := must(filepath.Glob(filepath.Join(w.PoolerDir(), "databases-*.ini")))(t)
			for _, f := range files {
				noError(t, os.WriteFile(f, []byte("[databases]\n"), 0o644))
			}
		}},
		{codes: []doctor.Code{doctor.AccountDiffers}, repaired: true,
			do: ledger("UPDATE ledger.database SET account_id = '%s'", db)},
		{codes: []doctor.Code{doctor.StrayDatabase, doctor.StrayRole},
			do: func(t *testing.T) {
				server("CREATE ROLE pgh_00000000000000000000000000000000_holder")(t)
				server("CREATE DATABASE tmp_00000000000000000000000000000000 OWNER pgh_00000000000000000000000000000000_holder")(t)
			},
			undo: func(t *testing.T) {
				server("DROP DATABASE tmp_00000000000000000000000000000000")(t)
				server("DROP ROLE pgh_00000000000000000000000000000000_holder")(t)
			}},
		{codes: []doctor.Code{doctor.BackupKeyDiffers}, do: ledger(otherKey), undo: ledger(otherKey)},
		{codes: []doctor.Code{doctor.DatabaseUnknown},
			do: ledger(`INSERT INTO ledger.database (id, name, role_model, connection_cap, made_by, backup_key)
				VALUES ('00000000-0000-4000-8000-000000000000', 'unknown', 'managed', 0, '', sha256(''))`),
			undo: ledger("DELETE FROM ledger.database WHERE name = 'unknown'")},
		{codes: []doctor.Code{doctor.FileUnknown},
			do: func(t *testing.T) {
				noError(t, os.MkdirAll(backups(), 0o700))
				noError(t, os.WriteFile(backups(stem+".set"), []byte("somebody's"), 0o600))
			},
			undo: func(t *testing.T) { noError(t, os.Remove(backups(stem+".set"))) }},
		{codes: []doctor.Code{doctor.CompanionLeft}, repaired: true, do: func(t *testing.T) {
			noError(t, os.MkdirAll(backups(), 0o700))
			noError(t, os.WriteFile(backups(stem+".a.manifest"), []byte("{}"), 0o600))
			noError(t, os.Chtimes(backups(stem+".a.manifest"), old, old))
		}},
	}
}
