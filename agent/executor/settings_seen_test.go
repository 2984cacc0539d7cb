package executor

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pg"
)

// madeIn enters the database that db is connected to, with an owner and other logins, and returns it.
func madeIn(t *testing.T, db *sql.DB, logins int) databaseRow {
	t.Helper()
	d := databaseRow{
		ID: "d", Name: check.Must(pg.One[string](t.Context(), db, "SELECT current_database()"))(t),
		OID: check.Must(pg.One[uint32](t.Context(), db, "SELECT oid FROM pg_database WHERE datname = current_database()"))(t),
	}
	exec(t, db, `INSERT INTO ledger.database (id, name, role_model, connection_cap, made_by, oid)
		VALUES ($1, $2, 'managed', 0, '', $3)`, d.ID, d.Name, d.OID)
	enter := func(name, part string) {
		exec(t, db, "CREATE ROLE "+pg.Ident(name))
		exec(t, db, `INSERT INTO ledger.role (name, oid, database_id, part)
			SELECT rolname, oid, $2, $3 FROM pg_roles WHERE rolname = $1`, name, d.ID, part)
	}
	enter(d.Name, ownerPart)
	for i := range logins {
		enter(fmt.Sprintf("login_%02d", i), "additional")
	}
	return d
}

// Whatever its logins store, reading a database's settings takes little; and a change of them does not look at other logins.
func TestSettingsThatAreReadAreBounded(t *testing.T) {
	db := ledger(t)
	x := &Executor{db: db}
	wantSameTimes(t, db)
	d := madeIn(t, db, settingsAtOnce/len(settingNames)+1)
	long := pg.Quote(strings.Repeat(" ", 3<<20) + "15s")
	set := func(login, where string) {
		for _, name := range settingNames {
			value := "'on'"
			if name != readOnlyDefault {
				value = long
			}
			exec(t, db, "ALTER ROLE "+pg.Ident(login)+where+" SET "+name+" = "+value)
		}
	}
	exec(t, db, "ALTER DATABASE "+pg.Ident(d.Name)+" SET lock_timeout = 7")
	set(d.Name, " IN DATABASE "+pg.Ident(d.Name))
	set("login_00", " IN DATABASE "+pg.Ident(d.Name))
	set("login_01", "")
	for _, name := range settingNames {
		exec(t, db, "DO $$ BEGIN FOR i IN 2..25 LOOP EXECUTE format('ALTER ROLE login_%s SET "+name+" = %L', to_char(i, 'FM00'), '1');"+
			" END LOOP; END $$")
	}

	for everyone, want := range map[bool]int{false: 1 + len(settingNames), true: settingsAtOnce} {
		seen := check.Must(x.settingsSeen(t.Context(), d, everyone))(t)
		if len(seen.all) != want {
			t.Errorf("%d settings are read (everyone: %t), want %d", len(seen.all), everyone, want)
		}
		if got := seen.of("", true, lockTimeout); got != "7" {
			t.Errorf("the database's: %q (everyone: %t)", got, everyone)
		}
		for _, one := range seen.all {
			if len(one.value) > 64 {
				t.Errorf("%d bytes of %s of %q are read", len(one.value), one.name, one.role)
			}
		}
	}
}

// PostgreSQL itself takes each of these times for what we do.
func wantSameTimes(t *testing.T, db *sql.DB) {
	t.Helper()
	tx := check.Must(db.BeginTx(t.Context(), nil))(t)
	defer tx.Rollback()
	for text, want := range writtenTimes {
		var got int64
		_, err := tx.ExecContext(t.Context(), "SELECT set_config('lock_timeout', $1, true)", text)
		if err == nil {
			err = tx.QueryRowContext(t.Context(), "SELECT setting FROM pg_settings WHERE name = 'lock_timeout'").Scan(&got)
		}
		if err != nil || got != want {
			t.Errorf("PostgreSQL takes %q for %d ms, want %d (%v)", text, got, want, err)
		}
	}
}
