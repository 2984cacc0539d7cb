package settings

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/ledgertest"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
)

// madeIn enters the database that db is connected to, with an owner and other logins, and returns it.
func madeIn(t *testing.T, db *sql.DB, logins int) ledger.Database {
	t.Helper()
	name, oid := ledgertest.Enter(t, db, logins)
	return ledger.Database{ID: ledgertest.ID, Name: name, OID: oid}
}

// Whatever its logins store, reading a database's settings takes little; and a change of them does not look at other logins.
func TestSettingsThatAreReadAreBounded(t *testing.T) {
	db := ledgertest.New(t)
	x := &Setter{db: db}
	wantSameTimes(t, db)
	d := madeIn(t, db, settingsAtOnce/len(settingNames)+1)
	long := pg.Quote(strings.Repeat(" ", 3<<20) + "15s")
	set := func(login, where string) {
		for _, name := range settingNames {
			value := "'on'"
			if name != ledger.ReadOnlyDefault {
				value = long
			}
			ledgertest.Exec(t, db, "ALTER ROLE "+pg.Ident(login)+where+" SET "+name+" = "+value)
		}
	}
	ledgertest.Exec(t, db, "ALTER DATABASE "+pg.Ident(d.Name)+" SET lock_timeout = 7")
	set(d.Name, " IN DATABASE "+pg.Ident(d.Name))
	set("login_00", " IN DATABASE "+pg.Ident(d.Name))
	set("login_01", "")
	for _, name := range settingNames {
		ledgertest.Exec(t, db, "DO $$ BEGIN FOR i IN 2..25 LOOP"+
			" EXECUTE format('ALTER ROLE login_%s SET "+name+" = %L', to_char(i, 'FM00'), '1'); END LOOP; END $$")
	}

	for everyone, want := range map[bool]int{false: 1 + len(settingNames), true: settingsAtOnce} {
		seen := check.Must(x.settingsSeen(t.Context(), d, everyone))(t)
		if len(seen.all) != want {
			t.Errorf("%d settings are read (everyone: %t), want %d", len(seen.all), everyone, want)
		}
		if got := seen.of("", true, ledger.LockTimeout); got != "7" {
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
