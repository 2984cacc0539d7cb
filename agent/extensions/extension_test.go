package extensions_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
)

// uses is what each extension is used for, in a table that it is not yet used in, and what must come of it.
var uses = map[extension.Name]string{
	extension.Citext: `CREATE TABLE names (name citext PRIMARY KEY); INSERT INTO names VALUES ('Ada');
		SELECT name = 'ADA' FROM names`,
	extension.PgTrgm: `CREATE TABLE words (word text); CREATE INDEX ON words USING gist (word gist_trgm_ops);
		SELECT 'word' <% 'two words'`,
	extension.PgCrypto: `SELECT crypt('secret', gen_salt('bf', 4)) LIKE '$2a$%'
		AND pgp_sym_decrypt(pgp_sym_encrypt('x', 'k'), 'k') = 'x'`,
}

// changedBy sends the command again and again until the change is over.
func changedBy(t testing.TB, s *agenttest.Stack, c protocol.Command) (report command.ExtensionReport) {
	t.Helper()
	check.Eventually(t, "the change does not end", func() bool {
		report = command.ExtensionReport{}
		check.NoError(t, json.Unmarshal(s.Done(t, c), &report))
		return report.State != command.ExtensionRunning
	})
	return report
}

// wantChanged demands that an extension is changed, stands and works.
func wantChanged(t testing.TB, s *agenttest.Stack, w agenttest.Wanted, c protocol.Command, name extension.Name) {
	t.Helper()
	want := command.ExtensionReport{
		State: command.ExtensionDone, Stage: "done", Changed: true, InstalledVersion: agenttest.Supported(name), Schema: "public",
	}
	if got := changedBy(t, s, c); got != want {
		t.Fatalf("%+v", got)
	}
	wantInUse(t, s, w, name)
}

func wantInUse(t testing.TB, s *agenttest.Stack, w agenttest.Wanted, name extension.Name) {
	t.Helper()
	if e := extensionOf(t, s, w, name); e.InstalledVersion != agenttest.Supported(name) || e.Schema != "public" {
		t.Errorf("%+v", e)
	}
	owner := s.Owner(t, w)
	at := strings.LastIndex(uses[name], ";") + 1
	setup, query := uses[name][:at], uses[name][at:]
	check.Must(owner.Exec(setup))(t)
	var works bool
	if check.NoError(t, owner.QueryRow(query).Scan(&works)); !works {
		t.Errorf("%s is not what it should be", query)
	}
}

// wantUnchanged demands that a change fails, and that the message says why.
func wantUnchanged(t testing.TB, s *agenttest.Stack, c protocol.Command, why string) {
	t.Helper()
	got := changedBy(t, s, c)
	if got.State != command.ExtensionFailed || got.Changed || !strings.Contains(got.Message, why) {
		t.Errorf("%+v, want a failure for %q", got, why)
	}
}

func extensionOf(t testing.TB, s *agenttest.Stack, w agenttest.Wanted, name extension.Name) command.ExtensionEntry {
	t.Helper()
	for _, e := range extensions(t, s, w).Entries {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("%s is not in the catalog", name)
	return command.ExtensionEntry{}
}

func extensions(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) (list command.ExtensionList) {
	t.Helper()
	status, text, err := s.Request(http.MethodGet, "/v1/databases/"+w.ID+"/extensions", nil)
	check.NoError(t, err)
	if status != http.StatusOK {
		t.Fatalf("%d: %s", status, text)
	}
	check.NoError(t, json.Unmarshal(text, &list))
	return list
}

// noChangeLogins checks that no login of a change is left.
func noChangeLogins(t testing.TB, s *agenttest.Stack) {
	t.Helper()
	check.Eventually(t, "a login of a change is left", func() bool {
		return s.One(t, "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'ext\\_%'") == "0"
	})
}

func TestExtensionsAreInstalledAsTheOwner(t *testing.T) {
	t.Parallel()
	s := agenttest.Shared(t)
	w := s.Made(t, database.Managed)
	for _, name := range extension.Names {
		wantChanged(t, s, w, w.Change(extension.Install, name), name)
		wantUnchanged(t, s, w.Change(extension.Install, name), "installed already")
		wantUnchanged(t, s, w.Change(extension.Upgrade, name), "already")
	}
	const owners = `SELECT string_agg(DISTINCT r.rolname, ' ') FROM pg_extension e JOIN pg_roles r ON r.oid = e.extowner
		WHERE extname = ANY ('{citext,pg_trgm,pgcrypto}')`
	var owner string
	check.NoError(t, s.SuperIn(t, w).QueryRow(owners).Scan(&owner))
	if owner != w.Name {
		t.Errorf("the extensions belong to %s", owner)
	}
	noChangeLogins(t, s)
}

// Nobody has these versions from this service, but a database that was restored from elsewhere may. pgcrypto 1.3 differs from 1.2
// in markings only.
func TestExtensionsAreUpgraded(t *testing.T) {
	t.Parallel()
	s := agenttest.Shared(t)
	w := s.Made(t, database.Managed)
	owner := s.Owner(t, w)
	wantUnchanged(t, s, w.Change(extension.Upgrade, extension.PgTrgm), "not installed")
	check.Must(owner.Exec(`CREATE EXTENSION pg_trgm VERSION '1.3'; CREATE EXTENSION citext VERSION '1.4'; CREATE EXTENSION pgcrypto;
		CREATE SCHEMA aside`))(t)
	check.Must(s.SuperIn(t, w).Exec(`UPDATE pg_extension SET extversion = '1.2' WHERE extname = 'pgcrypto'`))(t)
	check.Must(s.SuperIn(t, w).Exec(`ALTER EXTENSION citext SET SCHEMA aside`))(t)
	wantUnchanged(t, s, w.Change(extension.Upgrade, extension.Citext), `in the schema "aside"`)
	check.Must(s.SuperIn(t, w).Exec(`ALTER EXTENSION citext SET SCHEMA public`))(t)
	for _, name := range extension.Names {
		wantChanged(t, s, w, w.Change(extension.Upgrade, name), name)
	}
	noChangeLogins(t, s)
}

// A ledger that was restored into another server names transactions that this one has never had.
func TestAChangeBegunOnAnotherServerIsMade(t *testing.T) {
	s := agenttest.Shared(t)
	w := s.Made(t, database.Managed)
	for _, end := range []func(protocol.Command){
		func(c protocol.Command) { s.Done(t, agenttest.Closing(c.OperationID)) },
		func(c protocol.Command) { wantChanged(t, s, w, c, extension.PgTrgm) },
	} {
		c := w.Change(extension.Install, extension.PgTrgm)
		check.Must(s.Super.Exec(`INSERT INTO ledger.job (operation_id, step, kind, database_id, payload, xact)
			VALUES ($1, $2, $2, $3, $4, '999999999999')`, c.OperationID, string(c.Kind), w.ID, string(c.Payload)))(t)
		end(c)
	}
}
