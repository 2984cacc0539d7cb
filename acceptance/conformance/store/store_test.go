package store_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	conformance "github.com/pgherd/pgherd/acceptance/conformance/store"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/fakes/memstore"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// stores are what every suite of the metadata runs against.
var stores = map[string]conformance.Metadata{
	"memstore":  inMemory(memstore.New),
	"rerunning": inMemory(memstore.NewRerunning),
	"postgres":  inPostgres,
}

func eachStore(t *testing.T, suite func(*testing.T, conformance.Metadata)) {
	t.Parallel()
	for name, m := range stores {
		t.Run(name, func(t *testing.T) { suite(t, m) })
	}
}

func TestStore(t *testing.T)          { eachStore(t, conformance.Store) }
func TestAccounts(t *testing.T)       { eachStore(t, conformance.Accounts) }
func TestMembers(t *testing.T)        { eachStore(t, conformance.Members) }
func TestInvitations(t *testing.T)    { eachStore(t, conformance.Invitations) }
func TestSessions(t *testing.T)       { eachStore(t, conformance.Sessions) }
func TestCredentials(t *testing.T)    { eachStore(t, conformance.Credentials) }
func TestPasskeys(t *testing.T)       { eachStore(t, conformance.Passkeys) }
func TestOperators(t *testing.T)      { eachStore(t, conformance.Operators) }
func TestIdentities(t *testing.T)     { eachStore(t, conformance.Identities) }
func TestKeys(t *testing.T)           { eachStore(t, conformance.Keys) }
func TestNamespaces(t *testing.T)     { eachStore(t, conformance.Namespaces) }
func TestDatabases(t *testing.T)      { eachStore(t, conformance.Databases) }
func TestVisibility(t *testing.T)     { eachStore(t, conformance.Visibility) }
func TestBackupKeys(t *testing.T)     { eachStore(t, conformance.BackupKeys) }
func TestLogins(t *testing.T)         { eachStore(t, conformance.Logins) }
func TestRoles(t *testing.T)          { eachStore(t, conformance.Roles) }
func TestRoleChanges(t *testing.T)    { eachStore(t, conformance.RoleChanges) }
func TestAllowlist(t *testing.T)      { eachStore(t, conformance.Allowlist) }
func TestBackups(t *testing.T)        { eachStore(t, conformance.Backups) }
func TestOperations(t *testing.T)     { eachStore(t, conformance.Operations) }
func TestQueue(t *testing.T)          { eachStore(t, conformance.Queue) }
func TestStorage(t *testing.T)        { eachStore(t, conformance.Storage) }
func TestDrills(t *testing.T)         { eachStore(t, conformance.Drills) }
func TestUsage(t *testing.T)          { eachStore(t, conformance.Usage) }
func TestUses(t *testing.T)           { eachStore(t, conformance.Uses) }
func TestIdempotency(t *testing.T)    { eachStore(t, conformance.Idempotency) }
func TestAudit(t *testing.T)          { eachStore(t, conformance.Audit) }
func TestOutbox(t *testing.T)         { eachStore(t, conformance.Outbox) }
func TestServers(t *testing.T)        { eachStore(t, conformance.Servers) }
func TestSwitches(t *testing.T)       { eachStore(t, conformance.Switches) }
func TestSealedValues(t *testing.T)   { eachStore(t, conformance.SealedValues) }
func TestWebhooks(t *testing.T)       { eachStore(t, conformance.Webhooks) }
func TestDeliveries(t *testing.T)     { eachStore(t, conformance.Deliveries) }
func TestDispatch(t *testing.T)       { eachStore(t, conformance.Dispatch) }
func TestMails(t *testing.T)          { eachStore(t, conformance.Mails) }
func TestQualifications(t *testing.T) { eachStore(t, conformance.Qualifications) }
func TestSigningKeys(t *testing.T)    { eachStore(t, conformance.SigningKeys) }
func TestKeyRings(t *testing.T)       { eachStore(t, conformance.KeyRings) }
func TestDeletions(t *testing.T)      { eachStore(t, conformance.Deletions) }
func TestUploads(t *testing.T)        { eachStore(t, conformance.Uploads) }
func TestRetention(t *testing.T)      { eachStore(t, conformance.Retention) }
func TestPreviews(t *testing.T)       { eachStore(t, conformance.Previews) }
func TestDirectory(t *testing.T)      { eachStore(t, conformance.Directory) }
func TestAdmissions(t *testing.T)     { eachStore(t, conformance.Admissions) }
func TestForwards(t *testing.T)       { eachStore(t, conformance.Forwards) }
func TestRehearsals(t *testing.T)     { eachStore(t, conformance.Rehearsals) }
func TestNotifier(t *testing.T)       { eachStore(t, conformance.Notifier) }

func inMemory(open func() *memstore.Store) conformance.Metadata {
	return func(*testing.T) func(*testing.T) conformance.Host {
		s := open()
		return func(*testing.T) conformance.Host {
			return conformance.Host{
				Store: s, Admissions: s, Notifier: s, Dispatchers: s.Dispatchers(),
				Events:      func(*testing.T) []ports.OutboxEvent { return s.Events() },
				LoseMembers: func(_ *testing.T, of id.DatabaseID) { s.LoseMembers(of) },
				LoseKeys:    func(_ *testing.T, of id.DatabaseID) { s.LoseKeys(of) },
			}
		}
	}
}

// template is an empty migrated database, from which each world's is copied.
var template sync.Once

const templateName = "conformance_template"

func inPostgres(t *testing.T) func(*testing.T) conformance.Host {
	pg := clustertest.Postgres(t)
	template.Do(func() {
		clustertest.Exec(t, pg.URL("postgres"), "CREATE DATABASE "+templateName)
		if err := postgres.Migrate(t.Context(), pg.URL(templateName)); err != nil {
			t.Fatal(err)
		}
	})
	db := clustertest.Copy(t, templateName)
	return func(t *testing.T) conformance.Host { return openPostgres(t, db.URL) }
}

func openPostgres(t *testing.T, url string) conformance.Host {
	t.Helper()
	// A world runs some of the statements a few times; recorded are all.
	config := postgres.Config{URL: url, MaxConnections: 8, Brief: recordFile == ""}
	if recordFile != "" {
		config.URL = recorded.through(t, url)
	}
	store, err := postgres.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	notifier, err := postgres.NewNotifier(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		if err := notifier.Close(); err != nil {
			t.Error(err)
		}
	})
	return conformance.Host{
		Store: store, Admissions: store, Notifier: notifier, Dispatchers: notifier.Dispatchers(),
		Events:      func(t *testing.T) []ports.OutboxEvent { return storedEvents(t, url) },
		LoseMembers: loses(url, "tombstone_members"), LoseKeys: loses(url, "tombstone_keys"),
	}
}

// loses empties a table of what belongs to a database.
func loses(url, table string) func(*testing.T, id.DatabaseID) {
	return func(t *testing.T, of id.DatabaseID) {
		t.Helper()
		clustertest.Exec(t, url, "DELETE FROM "+table+" WHERE database_id = '"+string(of)+"'")
	}
}

// storedEvents reads the outbox past the adapter.
func storedEvents(t *testing.T, url string) []ports.OutboxEvent {
	t.Helper()
	db, err := sqlx.Open("postgres", url+"&timezone=UTC")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var events []ports.OutboxEvent
	err = db.Select(&events, `SELECT id, account_id, database_id, operation_id, request_id, name, payload, created_at
		FROM outbox_events ORDER BY created_at, id`)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if !json.Valid(e.Payload) {
			t.Errorf("the payload of %s is no JSON", e.ID)
		}
	}
	return events
}
