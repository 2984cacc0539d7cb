package agent_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

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
	s, w := databaseStack(t)
	s.moveToLatin1(t, w)
	s.asOwner(t, w, latin)
	const locale = `SELECT concat_ws(' ', pg_encoding_to_char(encoding), datlocprovider, daticulocale, daticurules, datcollate)
		FROM pg_database WHERE datname = $1`
	const want = "LATIN1 i de-AT & z < a C"
	s.roundTrip(t, w)
	if got := s.one(t, locale, w.name); got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
}

var inUTF8 = regexp.MustCompile(`(?m)^(CREATE DATABASE .*) ENCODING = 'UTF8' .*;$`)

// moveToLatin1 makes a database anew in another encoding and with another collation, by a dump.
func (s *stack) moveToLatin1(t testing.TB, w wanted) {
	t.Helper()
	dump := string(check.Must(exec.Command(s.config.PgDump, "--create", s.pg.URL(w.name)).Output())(t))
	moved := inUTF8.ReplaceAllString(dump,
		`$1 ENCODING = 'LATIN1' LOCALE_PROVIDER = icu ICU_LOCALE = 'de-AT' ICU_RULES = '& z < a' LC_COLLATE = 'C' LC_CTYPE = 'C';`)
	if moved == dump {
		t.Fatal("the dump does not make a database in UTF8")
	}
	moved = strings.ReplaceAll(moved, "SET transaction_timeout = 0;", "") // which PostgreSQL 16 does not know
	check.Must(s.super.Exec(`DROP DATABASE "` + w.name + `" WITH (FORCE)`))(t)
	s.psql(t, s.pg.URL("postgres"), moved)
	const register = `UPDATE ledger.database SET oid = (SELECT oid FROM pg_database WHERE datname = name) WHERE id = $1`
	check.Must(s.super.Exec(register, w.id))(t)
}
