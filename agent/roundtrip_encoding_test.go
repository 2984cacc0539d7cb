package agent_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
)

const latin = `
	CREATE COLLATION german_names (provider = icu, locale = 'de-u-co-phonebk');
	CREATE TABLE "Straßen" ("Größe" text COLLATE german_names, name text, number text COLLATE "C", raw bytea,
		CHECK (name <> 'Ä'));
	INSERT INTO "Straßen" SELECT 'Ö' || chr(160 + n), 'ß' || chr(255 - n), n || E'\u00e9\t\\', convert_to('ÿ', 'LATIN1')
		FROM generate_series(0, 90) n;
	CREATE INDEX ON "Straßen" (name, "Größe" DESC);
	CREATE VIEW "Übersicht" AS SELECT upper(name) AS "NÄME" FROM "Straßen" WHERE name > 'ßé' ORDER BY name;
	CREATE MATERIALIZED VIEW sorted AS SELECT string_agg(name, ',' ORDER BY name) FROM "Straßen";
	CREATE FUNCTION "grüße"(wem text DEFAULT 'Zoë') RETURNS text LANGUAGE sql AS 'SELECT ''Grüß dich, '' || wem';
	CREATE TYPE "Ämter" AS ENUM ('ä', 'Ö');
	COMMENT ON TABLE "Straßen" IS 'mit Größe';
	SELECT lo_from_bytea(815, 'x'); COMMENT ON LARGE OBJECT 815 IS 'groß'`

// The agent makes databases in UTF8 with the server's collation, and customers make none. One that an administrator has moved
// into another encoding and collation comes back in those.
func TestRoundTripInAnotherEncoding(t *testing.T) {
	t.Parallel()
	s, w := agenttest.DatabaseStack(t)
	moveToLatin1(t, s, w)
	asOwner(t, s, w, latin)
	const locale = `SELECT concat_ws(' ', pg_encoding_to_char(encoding), datlocprovider,
			coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale'), daticurules, datcollate)
		FROM pg_database d WHERE datname = $1` // PostgreSQL 17 has given the column another name
	const want = "LATIN1 i de-AT & z < a C"
	roundTrip(t, s, w)
	if got := s.One(t, locale, w.Name); got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
}

var inUTF8 = regexp.MustCompile(`(?m)^(CREATE DATABASE .*) ENCODING = 'UTF8' .*;$`)

// moveToLatin1 makes a database anew in another encoding and with another collation, by a dump.
func moveToLatin1(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) {
	t.Helper()
	dump := string(check.Must(exec.Command(s.Config.PgDump, "--create", s.PG.URL(w.Name)).Output())(t))
	moved := inUTF8.ReplaceAllString(dump,
		`$1 ENCODING = 'LATIN1' LOCALE_PROVIDER = icu ICU_LOCALE = 'de-AT' ICU_RULES = '& z < a' LC_COLLATE = 'C' LC_CTYPE = 'C';`)
	if moved == dump {
		t.Fatal("the dump does not make a database in UTF8")
	}
	moved = strings.ReplaceAll(moved, "SET transaction_timeout = 0;", "") // which PostgreSQL 16 does not know
	check.Must(s.Super.Exec(`DROP DATABASE "` + w.Name + `" WITH (FORCE)`))(t)
	psql(t, s, s.PG.URL("postgres"), moved)
	const register = `UPDATE ledger.database SET oid = (SELECT oid FROM pg_database WHERE datname = name) WHERE id = $1`
	check.Must(s.Super.Exec(register, w.ID))(t)
}
