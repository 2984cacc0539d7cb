package agent_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// trap fails in the copy of a restore where it runs as anybody but the login of that copy.
const trap = `CREATE FUNCTION trap(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
	IF current_database() ~ '^restore_' AND (session_user <> current_database() OR current_user <> session_user
		OR (SELECT rolsuper OR rolcreatedb OR rolcreaterole FROM pg_catalog.pg_roles WHERE rolname = current_user)
		OR EXISTS (SELECT FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles r ON r.oid = m.member
			WHERE r.rolname = current_user)) THEN
		RAISE 'the trap runs as % for %', current_user, session_user;
	END IF;
	RETURN n; END $$;
	CREATE FUNCTION trigger_trap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM public.trap(1); RETURN NEW; END';
	CREATE DOMAIN caught AS int CHECK (public.trap(VALUE) > 0);
	CREATE TABLE prey (id int DEFAULT public.trap(1) CHECK (public.trap(id) > 0),
		twice int GENERATED ALWAYS AS (public.trap(id)) STORED, domain caught);
	CREATE INDEX ON prey (public.trap(id)); CREATE STATISTICS prey_trap ON (public.trap(id)), id FROM prey;
	CREATE TRIGGER trap AFTER INSERT ON prey FOR EACH ROW EXECUTE FUNCTION trigger_trap();
	CREATE TRIGGER always AFTER INSERT ON prey FOR EACH ROW EXECUTE FUNCTION trigger_trap();
	ALTER TABLE prey ENABLE ALWAYS TRIGGER always;
	INSERT INTO prey (id, domain) SELECT n, n FROM generate_series(1, 20) n;
	CREATE MATERIALIZED VIEW trapped AS SELECT public.trap(id) FROM prey; CREATE VIEW viewed AS SELECT public.trap(id) FROM prey;
	ALTER TABLE prey ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY trap ON prey USING (public.trap(id) > 0);`

// What a customer has written runs as the copy's login, and not once that is shut.
func TestCodeInABackupRunsAsItsLogin(t *testing.T) {
	s, w := databaseStack(t)
	check.Must(s.owner(t, w).Exec(trap))(t)
	s.saved(t, w)
	s.restored(t, w)
	if n := s.inDatabase(t, w, "SELECT count(*) FROM prey"); n != "20" {
		t.Errorf("%s rows", n)
	}
}

// What a backup cannot be restored for is told with statement and line, and the live database is not touched.
func TestABackupThatCannotBeRestored(t *testing.T) {
	s, w := databaseStack(t)
	check.Must(s.owner(t, w).Exec(`CREATE FUNCTION elsewhere(n int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS
		$$ BEGIN RETURN current_database() NOT LIKE 'restore%'; END $$;
		CREATE TABLE picky (id int CONSTRAINT here CHECK (elsewhere(id))); INSERT INTO picky VALUES (1)`))(t)
	s.saved(t, w)
	operation := newUUID()
	report := s.loaded(t, w.load(operation))
	if report.State != command.LoadFailed || report.Reason != command.ReasonInvalid ||
		!strings.Contains(report.Message, "statement ") ||
		!strings.Contains(report.Message, "TABLE DATA public.picky") || !strings.Contains(report.Message, "SQLSTATE 23514") {
		t.Errorf("%+v", report)
	}
	s.refusedFor(t, command.ReasonNotFound, w.switching(operation))
	s.nothingOf(t, operation)
	s.done(t, closing(operation))
	s.getsIn(t, "afterwards", w.present(database.OwnerLogin))
}

// An update of PostgreSQL or pg_dump makes no backup useless, unless the new one writes the schema differently: then the error
// says that this may be all.
func TestABackupOfAnotherVersion(t *testing.T) {
	s, w := databaseStack(t)
	check.Must(s.owner(t, w).Exec("CREATE TABLE things (id int)"))(t)
	s.saved(t, w)
	s.doctored(t, w, func(schema string) string {
		schema = regexp.MustCompile(`(Dumped by pg_dump version).*`).ReplaceAllString(schema, "$1 16.3 (Debian)")
		return strings.Replace(schema, "SET transaction_timeout = 0;", "SET another_setting = off;", 1)
	})
	operation := newUUID()
	if report := s.loaded(t, w.load(operation)); report.State != command.LoadReady {
		t.Errorf("%+v", report)
	}
	s.done(t, closing(operation))
	s.doctored(t, w, func(schema string) string {
		return strings.Replace(schema, "id integer", "id int4", 1)
	})
	operation = newUUID()
	report := s.loaded(t, w.load(operation))
	if report.State != command.LoadFailed || report.Reason != command.ReasonInvalid ||
		!strings.Contains(report.Message, "TABLE public.things is different; the backup was written by PostgreSQL 16.") ||
		!strings.Contains(report.Message, "and pg_dump 16.3, its copy by PostgreSQL 16.") {
		t.Errorf("%+v", report)
	}
	s.nothingOf(t, operation)
}

// doctored changes the sidecar of the backup, and the manifest so that it names the changed one.
func (s *stack) doctored(t *testing.T, w wanted, change func(schema string) string) {
	t.Helper()
	stem := filepath.Join(s.config.BackupDir, w.id, strings.TrimSuffix(backupName, ".sql.gz"))
	unzip := check.Must(gzip.NewReader(bytes.NewReader(check.Must(os.ReadFile(stem + ".schema.sql.gz"))(t))))(t)
	schema := check.Must(io.ReadAll(unzip))(t)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	check.Must(io.WriteString(zip, change(string(schema))))(t)
	check.NoError(t, zip.Close())
	check.NoError(t, os.WriteFile(stem+".schema.sql.gz", zipped.Bytes(), 0o600))
	m := check.Must(backup.ParseManifest(check.Must(os.ReadFile(stem + ".manifest.json"))(t)))(t)
	m.Sidecar.SHA256, m.Sidecar.SizeBytes = fmt.Sprintf("%x", sha256.Sum256(zipped.Bytes())), int64(zipped.Len())
	check.NoError(t, os.WriteFile(stem+".manifest.json", check.Must(m.Encode())(t), 0o600))
}
