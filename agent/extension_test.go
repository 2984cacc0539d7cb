package agent_test

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
)

// supported are the versions of PostgreSQL 16.
var supported = map[extension.Name]string{extension.Citext: "1.6", extension.PgTrgm: "1.6", extension.PgCrypto: "1.3"}

// uses is what each extension is used for, in a table that it is not yet used in, and what must come of it.
var uses = map[extension.Name]string{
	extension.Citext: `CREATE TABLE names (name citext PRIMARY KEY); INSERT INTO names VALUES ('Ada');
		SELECT name = 'ADA' FROM names`,
	extension.PgTrgm: `CREATE TABLE words (word text); CREATE INDEX ON words USING gist (word gist_trgm_ops);
		SELECT 'word' <% 'two words'`,
	extension.PgCrypto: `SELECT crypt('secret', gen_salt('bf', 4)) LIKE '$2a$%'
		AND pgp_sym_decrypt(pgp_sym_encrypt('x', 'k'), 'k') = 'x'`,
}

func (w wanted) change(kind extension.Change, name extension.Name) protocol.Command {
	return told(newUUID(), 1, command.ChangeExtension{
		DatabaseID: w.databaseID(), Extension: name, Change: kind, Version: supported[name],
	})
}

// changedBy sends the command again and again until the change is over.
func (s *stack) changedBy(t testing.TB, c protocol.Command) (report command.ExtensionReport) {
	t.Helper()
	check.Eventually(t, "the change does not end", func() bool {
		report = command.ExtensionReport{}
		check.NoError(t, json.Unmarshal(s.done(t, c), &report))
		return report.State != command.ExtensionRunning
	})
	return report
}

// wantChanged demands that an extension is changed, stands and works.
func (s *stack) wantChanged(t testing.TB, w wanted, c protocol.Command, name extension.Name) {
	t.Helper()
	want := command.ExtensionReport{
		State: command.ExtensionDone, Stage: "done", Changed: true, InstalledVersion: supported[name], Schema: "public",
	}
	if got := s.changedBy(t, c); got != want {
		t.Fatalf("%+v", got)
	}
	s.wantInUse(t, w, name)
}

func (s *stack) wantInUse(t testing.TB, w wanted, name extension.Name) {
	t.Helper()
	if e := s.extensionOf(t, w, name); e.InstalledVersion != supported[name] || e.Schema != "public" {
		t.Errorf("%+v", e)
	}
	owner := s.owner(t, w)
	at := strings.LastIndex(uses[name], ";") + 1
	setup, query := uses[name][:at], uses[name][at:]
	check.Must(owner.Exec(setup))(t)
	var works bool
	if check.NoError(t, owner.QueryRow(query).Scan(&works)); !works {
		t.Errorf("%s is not what it should be", query)
	}
}

// wantUnchanged demands that a change fails, and that the message says why.
func (s *stack) wantUnchanged(t testing.TB, c protocol.Command, why string) {
	t.Helper()
	got := s.changedBy(t, c)
	if got.State != command.ExtensionFailed || got.Changed || !strings.Contains(got.Message, why) {
		t.Errorf("%+v, want a failure for %q", got, why)
	}
}

func (s *stack) extensionOf(t testing.TB, w wanted, name extension.Name) command.ExtensionEntry {
	t.Helper()
	for _, e := range s.extensions(t, w).Entries {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("%s is not in the catalog", name)
	return command.ExtensionEntry{}
}

func (s *stack) extensions(t testing.TB, w wanted) (list command.ExtensionList) {
	t.Helper()
	status, text, err := s.request(http.MethodGet, "/v1/databases/"+w.id+"/extensions", nil)
	check.NoError(t, err)
	if status != http.StatusOK {
		t.Fatalf("%d: %s", status, text)
	}
	check.NoError(t, json.Unmarshal(text, &list))
	return list
}

// superIn opens the database as the superuser.
func (s *stack) superIn(t testing.TB, w wanted) *sql.DB { return open(t, s.pg.URL(w.name)) }

// noChangeLogins checks that no login of a change is left.
func (s *stack) noChangeLogins(t testing.TB) {
	t.Helper()
	check.Eventually(t, "a login of a change is left", func() bool {
		return s.one(t, "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'ext\\_%'") == "0"
	})
}

func TestExtensionsAreInstalledAsTheOwner(t *testing.T) {
	t.Parallel()
	s := realStack(t)
	w := s.made(t, database.Managed)
	for _, name := range extension.Names {
		s.wantChanged(t, w, w.change(extension.Install, name), name)
		s.wantUnchanged(t, w.change(extension.Install, name), "installed already")
		s.wantUnchanged(t, w.change(extension.Upgrade, name), "already")
	}
	const owners = `SELECT string_agg(DISTINCT r.rolname, ' ') FROM pg_extension e JOIN pg_roles r ON r.oid = e.extowner
		WHERE extname = ANY ('{citext,pg_trgm,pgcrypto}')`
	var owner string
	check.NoError(t, s.superIn(t, w).QueryRow(owners).Scan(&owner))
	if owner != w.name {
		t.Errorf("the extensions belong to %s", owner)
	}
	s.noChangeLogins(t)
}

// Nobody has these versions from this service, but a database that was restored from elsewhere may. pgcrypto 1.3 differs from 1.2
// in markings only.
func TestExtensionsAreUpgraded(t *testing.T) {
	t.Parallel()
	s := realStack(t)
	w := s.made(t, database.Managed)
	owner := s.owner(t, w)
	s.wantUnchanged(t, w.change(extension.Upgrade, extension.PgTrgm), "not installed")
	check.Must(owner.Exec(`CREATE EXTENSION pg_trgm VERSION '1.3'; CREATE EXTENSION citext VERSION '1.4'; CREATE EXTENSION pgcrypto;
		CREATE SCHEMA aside`))(t)
	check.Must(s.superIn(t, w).Exec(`UPDATE pg_extension SET extversion = '1.2' WHERE extname = 'pgcrypto'`))(t)
	check.Must(s.superIn(t, w).Exec(`ALTER EXTENSION citext SET SCHEMA aside`))(t)
	s.wantUnchanged(t, w.change(extension.Upgrade, extension.Citext), `in the schema "aside"`)
	check.Must(s.superIn(t, w).Exec(`ALTER EXTENSION citext SET SCHEMA public`))(t)
	for _, name := range extension.Names {
		s.wantChanged(t, w, w.change(extension.Upgrade, name), name)
	}
	s.noChangeLogins(t)
}

// A ledger that was restored into another server names transactions that this one has never had.
func TestAChangeBegunOnAnotherServerIsMade(t *testing.T) {
	s := realStack(t)
	w := s.made(t, database.Managed)
	for _, end := range []func(protocol.Command){
		func(c protocol.Command) { s.done(t, closing(c.OperationID)) },
		func(c protocol.Command) { s.wantChanged(t, w, c, extension.PgTrgm) },
	} {
		c := w.change(extension.Install, extension.PgTrgm)
		check.Must(s.super.Exec(`INSERT INTO ledger.job (operation_id, step, kind, database_id, payload, xact)
			VALUES ($1, $2, $2, $3, $4, '999999999999')`, c.OperationID, string(c.Kind), w.id, string(c.Payload)))(t)
		end(c)
	}
}
