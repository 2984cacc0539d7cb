package wiring_test

import (
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// twoChanges are pending, in two databases, and nobody has refused them.
const twoChanges = `
	INSERT INTO users (id, email, name, created_at) VALUES (gen_random_uuid(), 'a@example.org', 'A', 'epoch');
	INSERT INTO accounts (id, owner_id, plan, created_at) SELECT id, id, 'pro', 'epoch' FROM users;
	INSERT INTO servers (id, name, agent_url, sealed_secret, ca, public_host, public_port, capacity, enabled, created_at)
		VALUES (gen_random_uuid(), 'one', '', '', '', '', 1, 1, true, 'epoch');
	INSERT INTO databases (id, account_id, server_id, name, display_name, role_model, environment, schedule, status, created_at,
		connection_cap, size_bytes, access_generation, allowlist_generation, allowlist_applied, role_generation, role_ordinal,
		roles_barred)
		SELECT gen_random_uuid(), a.id, s.id, n, '', 'managed', '', 'none', 'active', 'epoch', 1, 0, 0, 0, 0, 1, 0, false
		FROM accounts a, servers s, unnest(ARRAY['x', 'y']) n;
	INSERT INTO role_changes (id, database_id, login, username, kind, status, idempotency_key, generation, credential_generation,
		verifier, revealed, actor, request_id, created_at, attempts, not_before)
		SELECT gen_random_uuid(), id, 'owner', 'u', 'revoke', 'pending', 'k', 1, 1, '', false, '', '', 'epoch', 1, 'epoch'
		FROM databases`

// twoMails wait, and one was sent; one of those that wait is held.
const twoMails = `
	INSERT INTO mails (id, invitation_id, account_id, database_id, recipient, inviter, database_display, role, expires_at,
		sealed_token, status, attempts, created_at, finished_at, lease_owner, lease_epoch, not_before)
		SELECT gen_random_uuid(), gen_random_uuid(), d.account_id, d.id, 'bob@example.org', '', '', 'viewer', 'infinity',
			CASE s WHEN 'sent' THEN NULL ELSE ''::bytea END, s, 0, 'epoch', CASE s WHEN 'sent' THEN 'epoch'::timestamptz END,
			'', 0, 'epoch'
		FROM databases d, unnest(ARRAY['pending', 'sending', 'sent']) s WHERE d.name = 'x'`

// The statements are those of a host from before the columns of refusals and of quotas.
func TestWhatIsStoredIsCounted(t *testing.T) {
	db := clustertest.NewDatabase(t)
	check.NoError(t, postgres.Migrate(t.Context(), db.URL))
	store := check.Must(postgres.Open(t.Context(), postgres.Config{URL: db.URL}))(t)
	t.Cleanup(func() { _ = store.Close() })
	r := wiring.NewRegistry()
	check.NoError(t, wiring.MeasureStore(r, store, system.NewClock()))
	clustertest.Exec(t, db.URL, twoChanges)
	counted(t, r, "pgherd_role_changes_stuck", 0)
	clustertest.Exec(t, db.URL,
		"UPDATE role_changes SET refusal = 'refused' FROM databases d WHERE d.id = database_id AND d.name = 'x'")
	counted(t, r, "pgherd_role_changes_stuck", 1)

	counted(t, r, "pgherd_purges_refused", 0)
	clustertest.Exec(t, db.URL, `INSERT INTO operations (id, account_id, database_id, server_id, kind, status, stage, progress,
		input, result, error_code, error_text, actor, request_id, created_at, cancel_requested,
		lease_owner, lease_epoch, attempts, not_before)
		SELECT gen_random_uuid(), account_id, id, server_id, 'purge', 'running', 'removing', 0, '{}', 'null', 'AGENT_ERROR',
			'in service', 'system', '', 'epoch', false, '', 1, 1, 'epoch' FROM databases WHERE name = 'x'`)
	counted(t, r, "pgherd_purges_refused", 1)

	counted(t, r, "pgherd_databases_full", 0)
	clustertest.Exec(t, db.URL, `UPDATE databases SET size_bytes = 1::bigint << 40,
		storage_status = CASE name WHEN 'x' THEN 'full' ELSE 'closed' END`)
	for _, name := range []string{"pgherd_databases_full", "pgherd_databases_closed"} {
		counted(t, r, name, 1)
	}
	counted(t, r, "pgherd_databases_bytes", 2<<40)

	clustertest.Exec(t, db.URL, twoMails)
	counted(t, r, "pgherd_mails_waiting", 2)
	if got := gauge(t, r, "pgherd_mails_oldest_waiting_seconds"); got < 1e9 {
		t.Errorf("the oldest mail waits for %v s", got)
	}
}

func counted(t *testing.T, r wiring.Registry, name string, want float64) {
	t.Helper()
	if got := gauge(t, r, name); got != want {
		t.Errorf("%s is %v; want %v", name, got, want)
	}
}

func gauge(t *testing.T, r wiring.Registry, name string) float64 {
	t.Helper()
	for _, f := range check.Must(r.Gather())(t) {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("there is no " + name)
	return 0
}
