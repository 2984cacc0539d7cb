package pooler

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestVerifierIsGivenOnlyToThoseWhoMayLogIn(t *testing.T) {
	s := realStack(t)
	known := func() (n int) {
		row := s.super.QueryRowContext(t.Context(), `SELECT count(*) FROM pooler.login_secret('shop', 'shop')
			JOIN pg_authid ON rolname = login AND rolpassword = secret`)
		check.NoError(t, row.Scan(&n))
		return n
	}
	t.Cleanup(func() { execute(t, s, "ALTER ROLE shop LOGIN NOSUPERUSER VALID UNTIL 'infinity' PASSWORD 'shop-pw'") })
	if known() != 1 {
		t.Fatal("an open login has no verifier")
	}
	for _, change := range [][2]string{
		{"ALTER ROLE shop NOLOGIN", "ALTER ROLE shop LOGIN"},
		{"ALTER ROLE shop SUPERUSER", "ALTER ROLE shop NOSUPERUSER"},
		{"ALTER ROLE shop VALID UNTIL '2001-01-01'", "ALTER ROLE shop VALID UNTIL 'infinity'"},
		{
			"SET password_encryption = md5; ALTER ROLE shop PASSWORD 'shop-pw'; RESET password_encryption",
			"ALTER ROLE shop PASSWORD 'shop-pw'",
		},
		{"UPDATE pooler.gate SET open = false WHERE login = 'shop'", "UPDATE pooler.gate SET open = true WHERE login = 'shop'"},
		{"DELETE FROM pooler.gate WHERE login = 'shop'", "INSERT INTO pooler.gate VALUES ('shop', 'shop', true)"},
	} {
		execute(t, s, change[0])
		if known() != 0 {
			t.Errorf("a verifier after: %s", change[0])
		}
		execute(t, s, change[1])
		if known() != 1 {
			t.Errorf("no verifier after: %s", change[1])
		}
	}
}

// TestClosedGateTakesNoPassword tries what PgBouncer has taken for the password of a login that may not log in, with a server
// connection at hand that it would give to who gets in.
func TestClosedGateTakesNoPassword(t *testing.T) {
	s := realStack(t)
	for _, close := range []string{
		"UPDATE pooler.gate SET open = false WHERE login = 'shop'", "UPDATE pooler.gate SET database = 'blog' WHERE login = 'shop'",
		"SET password_encryption = md5; ALTER ROLE shop PASSWORD 'shop-pw'; RESET password_encryption", "ALTER ROLE shop PASSWORD NULL",
		"DELETE FROM pooler.gate WHERE login = 'shop'", // removed, and PgBouncer's files still name it
	} {
		check.NoError(t, s.reset(t.Context()))
		execute(t, s, "ALTER ROLE shop PASSWORD 'shop-pw'")
		for _, entry := range EntryNames("shop") {
			check.NoError(t, s.enter(t, entry, "shop", ""))
		}
		execute(t, s, close)
		for _, entry := range EntryNames("shop") {
			for _, password := range []string{"", "md5", "shop-pw", "SCRAM-SHA-256"} {
				if err := s.pooler.Prove(t.Context(), entry, "shop", password); !errors.Is(err, ErrRefused) {
					t.Errorf("%s: %q at %s: %v", close, password, entry, err)
				}
			}
		}
	}
	execute(t, s, "ALTER ROLE shop PASSWORD 'shop-pw'")
}

// A removed login lets nobody in before PgBouncer has taken that over: who got in would stay, and be there when the name is given
// again.
func TestNobodyComesInBesideARemoval(t *testing.T) {
	s := realStack(t)
	gone := fmt.Sprintf("gone_%d", time.Now().UnixNano())
	state := s.defaultState()
	state.Entries[0].Logins = append(state.Entries[0].Logins, Login{gone, 0})
	t.Cleanup(func() {
		execute(t, s, "DELETE FROM pooler.gate WHERE login = '"+gone+"'; DELETE FROM pooler.former; DROP ROLE IF EXISTS "+gone)
	})
	for _, password := range []string{gone + "-pw", "another"} {
		execute(t, s, "CREATE ROLE "+gone+" LOGIN PASSWORD '"+password+"'; INSERT INTO pooler.gate VALUES ('"+gone+"', 'shop', true)")
		check.NoError(t, s.pooler.Apply(t.Context(), state))
		for _, entry := range EntryNames("shop") {
			check.NoError(t, s.enter(t, entry, gone, "password="+password), entry)
		}
		execute(t, s, "DROP ROLE "+gone+"; DELETE FROM pooler.gate WHERE login = '"+gone+"'")
		for _, entry := range EntryNames("shop") {
			for _, sent := range []string{"''", "md5", password} {
				if err := s.enter(t, entry, gone, "password="+sent); err == nil || !strings.Contains(err.Error(), "SASL") {
					t.Errorf("%s: %s: %v", entry, sent, err)
				}
			}
		}
		check.NoError(t, s.reset(t.Context()))
	}
}

// A login whose first attempt meets a closed gate, as with a stopped database, gets in once the gate is open. PgBouncer keeps
// what it knew of the login at that attempt with the pool: since 1.26 a login for which it was given no row would be locked out
// of PostgreSQL for as long as PgBouncer runs.
func TestLoginThatCameTooEarlyGetsInLater(t *testing.T) {
	s := realStack(t)
	early := fmt.Sprintf("early_%d", time.Now().UnixNano()) // one that this PgBouncer has never met
	execute(t, s, "CREATE ROLE "+early+" LOGIN PASSWORD '"+early+"-pw'")
	t.Cleanup(func() { execute(t, s, "DROP ROLE "+early) })
	execute(t, s, "INSERT INTO pooler.gate VALUES ('"+early+"', 'shop', false)")
	state := s.defaultState()
	state.Entries[0].Logins = append(state.Entries[0].Logins, Login{early, 2})
	check.NoError(t, s.pooler.Apply(t.Context(), state))
	for _, entry := range EntryNames("shop") {
		if err := s.enter(t, entry, early, ""); err == nil {
			t.Errorf("%s: let in by a closed gate", entry)
		}
	}
	execute(t, s, "UPDATE pooler.gate SET open = true WHERE login = '"+early+"'")
	for _, entry := range EntryNames("shop") {
		check.NoError(t, s.enter(t, entry, early, ""), entry)
		if err := s.enter(t, entry, early, "password=wrong"); err == nil {
			t.Errorf("%s: let in with a wrong password", entry)
		}
	}
}

// The agent asks whether a login has a password; nobody else may, and nobody is told what it is.
func TestOnlyTheAgentComparesVerifiers(t *testing.T) {
	s := realStack(t)
	has := func(login, verifier string) (is bool) {
		t.Helper()
		row := s.super.QueryRowContext(t.Context(), `SELECT pooler.has_verifier($1::text,
			CASE $2 WHEN 'none' THEN NULL WHEN 'its own' THEN (SELECT rolpassword FROM pg_authid WHERE rolname = $1::text) ELSE $2 END)`,
			login, verifier)
		check.NoError(t, row.Scan(&is))
		return is
	}
	if !has("shop", "its own") || has("shop", "another") || has("shop", "none") {
		t.Error("a login with a password")
	}
	t.Cleanup(func() { execute(t, s, "ALTER ROLE shop PASSWORD 'shop-pw'") })
	execute(t, s, "ALTER ROLE shop PASSWORD NULL")
	if !has("shop", "none") || has("shop", "another") {
		t.Error("a login without a password")
	}
	for _, stranger := range []string{"pgherd_agent", "pgherd_pooler", "postgres", "nobody"} {
		if has(stranger, "its own") || has(stranger, "none") {
			t.Errorf("%s, which is no customer's login", stranger)
		}
	}
	for role, want := range map[string]bool{"pgherd_agent": true, "pgherd_pooler": false, "shop": false} {
		var may bool
		row := s.super.QueryRowContext(t.Context(), `SELECT has_schema_privilege($1, 'pooler', 'USAGE')
			AND has_function_privilege($1, 'pooler.has_verifier(text, text)', 'EXECUTE')
			AND has_function_privilege($1, 'pooler.verifier_mark(text)', 'EXECUTE')`, role)
		if err := row.Scan(&may); err != nil || may != want {
			t.Errorf("%s may ask: %t %v", role, may, err)
		}
	}
}

// A mark changes with the verifier and is not it.
func TestMarkTellsVerifiersApart(t *testing.T) {
	s := realStack(t)
	mark := func(login string) string {
		t.Helper()
		var text string
		check.NoError(t, s.super.QueryRowContext(t.Context(), "SELECT coalesce(pooler.verifier_mark($1), '')", login).Scan(&text))
		return text
	}
	t.Cleanup(func() { execute(t, s, "ALTER ROLE shop PASSWORD 'shop-pw'") })
	first := mark("shop")
	if len(first) != 64 || first != mark("shop") {
		t.Errorf("%q", first)
	}
	execute(t, s, "ALTER ROLE shop PASSWORD 'shop-pw'") // the same password, with another salt
	if second := mark("shop"); len(second) != 64 || second == first {
		t.Errorf("%q after %q", second, first)
	}
	execute(t, s, "ALTER ROLE shop PASSWORD NULL")
	for _, login := range []string{"shop", "pgherd_agent", "postgres", "nobody"} {
		if got := mark(login); got != "" {
			t.Errorf("%s: %q", login, got)
		}
	}
}

// A login can give itself a verifier of any length. PgBouncer and the agent are given none of it.
func TestAVerifierThatIsTooLong(t *testing.T) {
	s := realStack(t)
	t.Cleanup(func() { execute(t, s, "ALTER ROLE shop PASSWORD 'shop-pw'") })
	for bytes, want := range map[int]string{16: "t f", 3_000_000: "f t"} {
		// Incompressible, as whoever wants to fill memory makes it.
		execute(t, s, fmt.Sprintf(`DO $$ DECLARE salt bytea := (SELECT string_agg(sha256(n::text::bytea), '') FROM
				generate_series(0, %[1]d / 32) n); BEGIN
			EXECUTE format('ALTER ROLE shop PASSWORD %%L', 'SCRAM-SHA-256$4096:' ||
				translate(encode(substr(salt, 1, %[1]d), 'base64'), E'\n', '') || '$' ||
				encode(sha256('a'), 'base64') || ':' || encode(sha256('b'), 'base64')); END $$`, bytes))
		var got string
		check.NoError(t, s.super.QueryRowContext(t.Context(), `
			SELECT concat_ws(' ', rolpassword = secret, secret = pooler.no_verifier())
			FROM pooler.login_secret('shop', 'shop'), pg_authid WHERE rolname = 'shop'`).Scan(&got))
		if got != want {
			t.Errorf("a verifier with %d bytes of salt: %s, want %s", bytes, got, want)
		}
		var mark, whole int
		check.NoError(t, s.super.QueryRowContext(t.Context(), `SELECT length(pooler.verifier_mark('shop')), length(rolpassword)
			FROM pg_authid WHERE rolname = 'shop'`).Scan(&mark, &whole))
		if mark > 64 || whole < bytes {
			t.Errorf("a verifier of %d characters has a mark of %d", whole, mark)
		}
	}
}

func TestPoolersLoginCanOnlyAskForVerifiers(t *testing.T) {
	s := realStack(t)
	asPooler, err := sql.Open("postgres", fmt.Sprintf(
		"host=127.0.0.1 port=%d user=pgherd_pooler password='%s' dbname=pgherd sslmode=disable",
		s.settings.ServerPort, s.settings.AuthPassword))
	check.NoError(t, err)
	defer asPooler.Close()
	for statement, want := range map[string]bool{
		"SELECT * FROM pooler.login_secret('shop', 'shop')":      true,
		"SELECT rolpassword FROM pg_authid":                      false,
		"SELECT * FROM pooler.gate":                              false,
		"SELECT * FROM pooler.former":                            false,
		"UPDATE pooler.gate SET open = true":                     false,
		"CREATE TABLE pooler.mine ()":                            false,
		"SET ROLE pgherd_secret_reader":                          false,
		"CREATE FUNCTION pooler.f() RETURNS int RETURN 1":        false,
		"ALTER FUNCTION pooler.login_secret STABLE":              false,
		"SET ROLE pgherd_agent":                                  false,
		"SELECT pg_read_file('postgresql.conf')":                 false,
		"SELECT * FROM pooler.login_secret('postgres','pgherd')": true, // and returns nothing
	} {
		_, err := asPooler.ExecContext(t.Context(), statement)
		if (err == nil) != want {
			t.Errorf("%s: %v", statement, err)
		}
	}
}
