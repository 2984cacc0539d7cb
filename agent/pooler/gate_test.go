package pooler

import (
	"database/sql"
	"fmt"
	"testing"
)

func TestVerifierIsGivenOnlyToThoseWhoMayLogIn(t *testing.T) {
	s := realStack(t)
	known := func() (n int) {
		row := s.super.QueryRowContext(t.Context(), "SELECT count(*) FROM pooler.login_secret('shop', 'shop')")
		if err := row.Scan(&n); err != nil {
			t.Fatal(err)
		}
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

func TestPoolersLoginCanOnlyAskForVerifiers(t *testing.T) {
	s := realStack(t)
	asPooler, err := sql.Open("postgres", fmt.Sprintf(
		"host=127.0.0.1 port=%d user=pgherd_pooler password='%s' dbname=pgherd sslmode=disable",
		s.settings.ServerPort, s.settings.AuthPassword))
	if err != nil {
		t.Fatal(err)
	}
	defer asPooler.Close()
	for statement, want := range map[string]bool{
		"SELECT * FROM pooler.login_secret('shop', 'shop')":      true,
		"SELECT rolpassword FROM pg_authid":                      false,
		"SELECT * FROM pooler.gate":                              false,
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
