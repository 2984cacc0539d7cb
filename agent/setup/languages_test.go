package setup_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// initWith runs agent init with a policy for languages.
func initWith(t *testing.T, pg *cluster.Postgres, p floors.Policy) (setup.Report, error) {
	t.Helper()
	return setup.Init(t.Context(), setup.Options{
		DSN: pg.URL("postgres"), CredentialsFile: filepath.Join(t.TempDir(), "credentials"), NewPasswords: true,
		Versions: anyVersion, Languages: p,
	})
}

// refusedFor fails the test unless init refuses for exactly these languages.
func refusedFor(t *testing.T, pg *cluster.Postgres, want ...string) {
	t.Helper()
	_, err := initWith(t, pg, floors.Policy{})
	if !floors.Is(err) || !strings.HasSuffix(err.Error(), "--accept-languages "+strings.Join(want, ",")) {
		t.Fatalf("init says %v; want it to refuse %v", err, want)
	}
}

// TestLanguagesOfTheServer follows one language: offered, accepted, installed by a customer, and no longer offered.
func TestLanguagesOfTheServer(t *testing.T) {
	pg, extensions := clustertest.NewPrivate(t)
	admin := pg.URL("postgres")
	if _, err := initWith(t, pg, floors.Policy{}); err != nil {
		t.Fatalf("without languages: %v", err)
	}
	clustertest.OfferLanguage(t, extensions, "made_extension", "made")
	clustertest.Exec(t, admin, "DROP DATABASE pgherd_maintenance")
	refusedFor(t, pg, "made")
	if n := text(t, admin, "SELECT count(*) FROM pg_database WHERE datname = 'pgherd_maintenance'"); n != "0" {
		t.Error("a server that was refused was changed")
	}
	report, err := initWith(t, pg, floors.Policy{Accept: []string{"made"}})
	if err != nil || !slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.Contains(w, "made (offered by") }) {
		t.Fatalf("accepted: %v, %v", report.Warnings, err)
	}

	clustertest.Exec(t, admin, "CREATE ROLE customer LOGIN PASSWORD 'secret'", "CREATE DATABASE orders",
		"GRANT CONNECT, CREATE ON DATABASE orders TO customer")
	clustertest.Exec(t, pg.URLFor("customer", "secret", "orders"), "CREATE EXTENSION made_extension",
		"DO LANGUAGE made 'BEGIN NULL; END'")
	if err := os.Remove(filepath.Join(extensions, "made_extension.control")); err != nil {
		t.Fatal(err)
	}
	refusedFor(t, pg, "made")
	clustertest.Exec(t, pg.URL("orders"), "DROP EXTENSION made_extension")
	if _, err := initWith(t, pg, floors.Policy{}); err != nil {
		t.Fatalf("after all: %v", err)
	}
}

// TestLanguagesThatAnOperatorInstalled looks where customers do not get: what is there may be there for a reason.
func TestLanguagesThatAnOperatorInstalled(t *testing.T) {
	pg, _ := clustertest.NewPrivate(t)
	for _, database := range []string{"template1", "postgres"} {
		clustertest.Exec(t, pg.URL(database), "CREATE TRUSTED LANGUAGE made HANDLER plpgsql_call_handler", "CREATE LANGUAGE wild "+
			"HANDLER plpgsql_call_handler")
		refusedFor(t, pg, "made")
		clustertest.Exec(t, pg.URL(database), "DROP LANGUAGE made")
	}
}

// TestWhichExtensionsBringLanguages writes control files and scripts of many kinds.
func TestWhichExtensionsBringLanguages(t *testing.T) {
	pg, extensions := clustertest.NewPrivate(t)
	file := func(name, text string) {
		t.Helper()
		path := filepath.Join(extensions, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const trusted = "default_version = '1'\ntrusted = true\n"
	for name, c := range map[string]struct{ control, script string }{
		"a_plain":     {trusted, "CREATE TRUSTED LANGUAGE plain HANDLER h;"},
		"a_old":       {trusted, "create or replace trusted procedural\n\tlanguage \"old\" handler h;"},
		"a_latin":     {trusted, "-- \xe9t\xe9\nCREATE TRUSTED LANGUAGE latin HANDLER h;"},
		"a_untrusted": {"default_version = '1'\n", "CREATE TRUSTED LANGUAGE untrusted HANDLER h;"},
		"a_wild":      {trusted, "CREATE LANGUAGE wild HANDLER h;"},
		"a_functions": {trusted, "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';"},
	} {
		file(name+".control", c.control)
		file(name+"--1.sql", c.script)
	}
	file("a_update.control", trusted)
	file("a_update--1.sql", "SELECT 1;")
	file("a_update--1--2.sql", "CREATE TRUSTED LANGUAGE updated HANDLER h;")
	file("a_elsewhere.control", trusted+"directory = 'extension/elsewhere'\n")
	file("elsewhere/a_elsewhere--1.sql", "CREATE TRUSTED LANGUAGE elsewhere HANDLER h;")
	db, err := sql.Open("postgres", pg.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	found, err := floors.OfferedLanguages(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, f.Name)
	}
	if want := []string{"elsewhere", "latin", "old", "plain", "updated"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}
