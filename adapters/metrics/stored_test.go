package metrics_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// twoChanges are pending, in two databases, and nobody has refused them.
const twoChanges = `
	INSERT INTO users (id, email, name, created_at) VALUES (gen_random_uuid(), 'a@example.org', 'A', 'epoch');
	INSERT INTO accounts (id, owner_id, plan, created_at) SELECT id, id, 'pro', 'epoch' FROM users;
	INSERT INTO servers (id, name, agent_url, sealed_secret, sealed_archive_key, ca, public_host, public_port,
		capacity, enabled, created_at)
		VALUES (gen_random_uuid(), 'one', '', '', '', '', '', 1, 1, true, 'epoch');
	INSERT INTO databases (id, account_id, server_id, name, display_name, role_model, environment, schedule, status, created_at,
		connection_cap, size_bytes, access_generation, allowlist_generation, allowlist_applied, role_generation, role_ordinal,
		roles_barred)
		SELECT gen_random_uuid(), a.id, s.id, n, '', 'managed', '', 'none', 'active', 'epoch', 1, 0, 0, 0, 0, 1, 0, false
		FROM accounts a, servers s, unnest(ARRAY['x', 'y']) n;
	INSERT INTO role_changes (id, database_id, login, username, kind, status, idempotency_key, generation, credential_generation,
		verifier, revealed, actor, request_id, created_at)
		SELECT gen_random_uuid(), id, 'owner', 'u', 'revoke', 'pending', 'k', 1, 1, '', false, '', '', 'epoch'
		FROM databases`

// aMove keeps customers out, and aForward could not be told.
const (
	aMove = `INSERT INTO operations (id, account_id, database_id, server_id, kind, status, stage, progress,
		input, result, error_code, error_text, actor, request_id, created_at, cancel_requested,
		lease_owner, lease_epoch, attempts, not_before)
		SELECT gen_random_uuid(), account_id, id, server_id, 'move', 'running', 'parting', 0, '{"shutAt":"1970-01-01T00:00:00Z"}',
			'null', '', '', 'system', '', 'epoch', false, '', 1, 1, 'epoch' FROM databases WHERE name = 'y'`
	aForward = `INSERT INTO forwards (database_id, server_id, created_at, until, generation, sent, address, welcome_generation,
		next_at, failures, trouble)
		SELECT id, server_id, 'epoch', '2100-01-01', 0, '', '', 0, 'epoch', 1, 'it does not answer' FROM databases WHERE name = 'y'`
)

// twoMails wait, and one was sent; one of those that wait is held.
const twoMails = `
	INSERT INTO mails (id, kind, note, invitation_id, account_id, database_id, recipient, inviter, database_display, role,
		expires_at,
		sealed_token, status, attempts, created_at, finished_at, lease_owner, lease_epoch, not_before)
		SELECT gen_random_uuid(), 'invitation', '', gen_random_uuid(), d.account_id, d.id, 'bob@example.org', '', '', 'viewer',
			'infinity',
			CASE s WHEN 'sent' THEN NULL ELSE ''::bytea END, s, 0, 'epoch', CASE s WHEN 'sent' THEN 'epoch'::timestamptz END,
			'', 0, 'epoch'
		FROM databases d, unnest(ARRAY['pending', 'sending', 'sent']) s WHERE d.name = 'x'`

// The statements are those of a host from before the columns of refusals and of quotas.
func TestWhatIsStoredIsCounted(t *testing.T) {
	url, r := measured(t, nil)
	clustertest.Exec(t, url, twoChanges)
	counted(t, r, "pgherd_role_changes_stuck", 0, "one")
	clustertest.Exec(t, url,
		"UPDATE role_changes SET refusal = 'refused' FROM databases d WHERE d.id = database_id AND d.name = 'x'")
	counted(t, r, "pgherd_role_changes_stuck", 1, "one")

	counted(t, r, "pgherd_purges_refused", 0, "one")
	clustertest.Exec(t, url, `INSERT INTO operations (id, account_id, database_id, server_id, kind, status, stage, progress,
		input, result, error_code, error_text, actor, request_id, created_at, cancel_requested,
		lease_owner, lease_epoch, attempts, not_before)
		SELECT gen_random_uuid(), account_id, id, server_id, 'purge', 'running', 'removing', 0, '{}', 'null', 'AGENT_ERROR',
			'in service', 'system', '', 'epoch', false, '', 1, 1, 'epoch' FROM databases WHERE name = 'x'`)
	counted(t, r, "pgherd_purges_refused", 1, "one")
	counted(t, r, "pgherd_operations", 1, "purge", "running")
	counted(t, r, "pgherd_operations", 0, "purge", "queued")
	counted(t, r, "pgherd_operations", 0, "backup", "queued")
	for name, labels := range map[string][]string{
		"pgherd_operations_oldest_age_seconds": {"running"}, "pgherd_operations_longest_wait_seconds": nil,
	} {
		if got := gauge(t, r, name, append([]string{"purge"}, labels...)...); got < 1e9 {
			t.Errorf("%s is %v", name, got)
		}
		counted(t, r, name, 0, append([]string{"backup"}, labels...)...)
	}

	counted(t, r, "pgherd_moves_longest_shut_seconds", 0, "false", "one")
	clustertest.Exec(t, url, aMove, aForward)
	if got := gauge(t, r, "pgherd_moves_longest_shut_seconds", "false", "one"); got < 1e9 {
		t.Errorf("customers are kept out for %v s", got)
	}
	counted(t, r, "pgherd_moves_longest_shut_seconds", 0, "true", "one")
	counted(t, r, "pgherd_forwards", 1, "one")
	counted(t, r, "pgherd_forwards_untold", 1, "one")

	counted(t, r, "pgherd_databases_full", 0)
	clustertest.Exec(t, url, `UPDATE databases SET size_bytes = 1::bigint << 40,
		storage_status = CASE name WHEN 'x' THEN 'full' ELSE 'closed' END`)
	for _, name := range []string{"pgherd_databases_full", "pgherd_databases_closed"} {
		counted(t, r, name, 1)
	}
	counted(t, r, "pgherd_databases_bytes", 2<<40)
	counted(t, r, "pgherd_databases_in_error", 0, "one")
	clustertest.Exec(t, url, "UPDATE databases SET status = 'error' WHERE name = 'x'")
	counted(t, r, "pgherd_databases_in_error", 1, "one")

	clustertest.Exec(t, url, `UPDATE operations SET status = 'failed', finished_at = 'epoch'`, "ANALYZE operations")
	for name, least := range map[string]float64{
		"pgherd_metadata_rows": 1, "pgherd_metadata_bytes": 8192, "pgherd_metadata_oldest_seconds": 1e9,
	} {
		if got := gauge(t, r, name, "operations"); got < least {
			t.Errorf("%s is %v; want %v at least", name, got, least)
		}
	}
	counted(t, r, "pgherd_metadata_oldest_seconds", 0, "keys")

	clustertest.Exec(t, url, twoMails)
	counted(t, r, "pgherd_mails_waiting", 2)
	if got := gauge(t, r, "pgherd_mails_oldest_waiting_seconds"); got < 1e9 {
		t.Errorf("the oldest mail waits for %v s", got)
	}
}

// kinds are two of all.
var kinds = []operation.Spec{{Kind: "backup"}, {Kind: "purge"}}

// Of one database the last verified backup is three days old; the other has none, and gets daily backups later.
func TestBackupsAreMeasuredByServer(t *testing.T) {
	url, r := measured(t, nil)
	_, all := measured(t, []string{"pro"}, url)
	days := func(what string, r metrics.Registry, want float64) {
		t.Helper()
		// The clock of the figures advances with each look.
		if got := gauge(t, r, "pgherd_backups_worst_age_seconds", "one") / (24 * 3600); got < want || got > want+1 {
			t.Errorf("%s: %v days, want %v", what, got, want)
		}
	}
	clustertest.Exec(t, url, twoChanges,
		`UPDATE databases SET schedule = CASE name WHEN 'x' THEN 'daily' ELSE 'none' END, next_backup_at = now() + '1 day',
			created_at = now() - '90 days'::interval`,
		`INSERT INTO backups (database_id, filename, operation_id, trigger, format, size_bytes, checksum_sha256, created_at,
			verified_at, role_manifest)
			SELECT id, 'of ' || n || ' days', gen_random_uuid(), 'scheduled', 'sql.gz', 1, 'sum', now() - n * '1 day'::interval,
				CASE WHEN n > 2 THEN now() END, true FROM databases, generate_series(1, 5) n WHERE name = 'x'`)
	days("the last verified one", r, 3)
	days("the last one, where none is verified", all, 1)
	clustertest.Exec(t, url, "UPDATE accounts SET verify_backups = false")
	days("the last one of an account without verification", r, 1)
	clustertest.Exec(t, url, "UPDATE accounts SET verify_backups = NULL",
		"UPDATE backups SET deleting_at = now() WHERE filename LIKE '%3%'")
	days("the last verified one that is not being deleted", r, 4)
	clustertest.Exec(t, url, "UPDATE databases SET schedule_since = now() - '12 h'::interval WHERE name = 'x'")
	days("daily backups that were just switched on", r, 0)
	clustertest.Exec(t, url, "UPDATE databases SET schedule_since = now() - '30 days'::interval WHERE name = 'x'")
	days("daily backups that were switched on before the last", r, 4)
	clustertest.Exec(t, url,
		"UPDATE databases SET schedule = 'daily', schedule_since = now() - '20 days'::interval WHERE name = 'y'")
	days("a database that has had none since", r, 20)
	clustertest.Exec(t, url, "UPDATE databases SET schedule_since = NULL WHERE name = 'y'")
	days("a database that was made with them", r, 90)
	clustertest.Exec(t, url, "UPDATE databases SET status = 'error' WHERE name = 'y'")
	days("a database that cannot be backed up", r, 90)
	clustertest.Exec(t, url, "UPDATE databases SET status = 'deleting' WHERE name = 'y'")
	days("beside one that is being deleted", r, 4)

	counted(t, r, "pgherd_backups_overdue", 0, "one")
	counted(t, r, "pgherd_backups_longest_overdue_seconds", 0, "one")
	clustertest.Exec(t, url, "UPDATE databases SET next_backup_at = now() - '10 days'::interval WHERE name = 'x'")
	counted(t, r, "pgherd_backups_overdue", 1, "one")
	if got := gauge(t, r, "pgherd_backups_longest_overdue_seconds", "one"); got < 10*24*3600 {
		t.Errorf("overdue by %v s", got)
	}
	clustertest.Exec(t, url, "UPDATE databases SET status = 'error'")
	counted(t, r, "pgherd_backups_overdue", 0, "one")
}

// What cannot be read is left out, and said; all the rest is there.
func TestACollectorThatFailsTakesOnlyItsOwn(t *testing.T) {
	url, r := measured(t, nil)
	counted(t, r, "pgherd_scrape_collector_success", 1, "mails")
	clustertest.Exec(t, url, "ALTER TABLE mails RENAME TO letters")
	counted(t, r, "pgherd_scrape_collector_success", 0, "mails")
	counted(t, r, "pgherd_scrape_collector_success", 1, "webhooks")
	counted(t, r, "pgherd_databases_full", 0)
	if _, there := lookUp(t, r, "pgherd_mails_waiting"); there {
		t.Error("there are figures of mails")
	}
	clustertest.Exec(t, url, "ALTER TABLE letters RENAME TO mails")
	counted(t, r, "pgherd_scrape_collector_success", 1, "mails")
	counted(t, r, "pgherd_mails_waiting", 0)
}

// counting counts how often figures are read.
type counting struct {
	ports.Figures
	ages, bytes, errors int
}

func (c *counting) BackupAges(ctx context.Context, plans []string) ([]ports.ServerTally, error) {
	c.ages++
	return c.Figures.BackupAges(ctx, plans)
}

func (c *counting) DatabaseBytes(ctx context.Context) (int64, error) {
	c.bytes++
	return c.Figures.DatabaseBytes(ctx)
}

func (c *counting) DatabasesInError(ctx context.Context) ([]ports.ServerTally, error) {
	c.errors++
	return c.Figures.DatabasesInError(ctx)
}

// However often they are asked for, figures that look at every database are read once in ten minutes.
func TestFiguresOfAllDatabasesAreKept(t *testing.T) {
	url, _ := measured(t, nil)
	clock, read := fakeclock.New(), &counting{}
	r := measuring(t, url, func(m *metrics.Measured) {
		read.Figures = m.Figures
		m.Figures, m.Clock = read, clock
	})
	for minute := range 21 {
		counted(t, r, "pgherd_databases_bytes", 0)
		if want := 1 + minute/10; read.ages != want || read.bytes != want || read.errors != minute+1 {
			t.Errorf("after %d minutes: %d and %d of all databases, want %d; %d of others",
				minute, read.ages, read.bytes, want, read.errors)
		}
		clock.Advance(time.Minute)
	}
}

// Accounts have figures where that is set, those with the most bytes, and at most so many.
func TestAccountsAreMeasuredWhereThatIsSet(t *testing.T) {
	const others = `
		INSERT INTO users (id, email, name, created_at)
			SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, n || '@example.org', '', 'epoch'
			FROM generate_series(1, 9) n;
		INSERT INTO accounts (id, owner_id, plan, created_at) SELECT id, id, 'pro', 'epoch' FROM users WHERE email <> 'a@example.org';
		INSERT INTO databases (id, account_id, server_id, name, display_name, role_model, environment, schedule, status, created_at,
			connection_cap, size_bytes, access_generation, allowlist_generation, allowlist_applied, role_generation, role_ordinal,
			roles_barred)
			SELECT gen_random_uuid(), a.id, s.id, 'of_' || right(a.id::text, 1), '', 'managed', '', 'none', 'active', 'epoch', 1,
				right(a.id::text, 1)::bigint * 1000, 0, 0, 0, 1, 0, false
			FROM servers s, accounts a JOIN users u ON u.id = a.owner_id WHERE u.email <> 'a@example.org';
		INSERT INTO backups (database_id, filename, operation_id, trigger, format, size_bytes, checksum_sha256, created_at,
			verified_at, role_manifest)
			SELECT id, 'f', gen_random_uuid(), 'scheduled', 'sql.gz', 77, 'sum', now(), NULL, true FROM databases WHERE name = 'of_9'`
	url, off := measured(t, nil)
	clustertest.Exec(t, url, twoChanges, others)
	const largest, second, last = "00000000-0000-4000-8000-000000000009", "00000000-0000-4000-8000-000000000008",
		"00000000-0000-4000-8000-000000000007"
	if _, there := lookUp(t, off, "pgherd_account_databases", largest); there {
		t.Error("accounts have figures without the setting")
	}
	r := measuring(t, url, func(m *metrics.Measured) { m.Accounts = 2 })
	counted(t, r, "pgherd_account_databases", 1, largest)
	counted(t, r, "pgherd_account_databases_bytes", 9000, largest)
	counted(t, r, "pgherd_account_backups_bytes", 77, largest)
	counted(t, r, "pgherd_account_operations", 0, largest)
	counted(t, r, "pgherd_account_databases_bytes", 8000, second)
	if _, there := lookUp(t, r, "pgherd_account_databases", last); there {
		t.Error("there are more accounts than are set")
	}
	clustertest.Exec(t, url, "UPDATE databases SET status = 'deleted' WHERE name = 'of_9'")
	counted(t, r, "pgherd_account_databases_bytes", 8000, second)
	counted(t, r, "pgherd_account_databases_bytes", 7000, last)
	page := string(check.Must(os.ReadFile("../../docs/operate/monitoring.md"))(t))
	for _, f := range check.Must(r.Gather())(t) {
		if name := f.GetName(); strings.HasPrefix(name, "pgherd_account_") && !strings.Contains(page, "`"+name+"{account}`") {
			t.Errorf("the page lacks %s", name)
		}
	}
}

// measured is a host's registry on a metadata database, by default a new one.
func measured(t *testing.T, unverified []string, url ...string) (string, metrics.Registry) {
	t.Helper()
	if len(url) == 0 {
		url = []string{clustertest.NewDatabase(t).URL}
		check.NoError(t, postgres.Migrate(t.Context(), url[0]))
	}
	return url[0], measuring(t, url[0], func(m *metrics.Measured) { m.UnverifiedPlans = unverified })
}

// measuring is a host's registry on a metadata database, with settings of its own.
func measuring(t *testing.T, url string, set func(*metrics.Measured)) metrics.Registry {
	t.Helper()
	store := check.Must(postgres.Open(t.Context(), postgres.Config{URL: url}))(t)
	t.Cleanup(func() { _ = store.Close() })
	r := metrics.NewRegistry("", "")
	m := metrics.Measured{Store: store, Figures: store.Figures(), Clock: impatient{new(atomic.Int64)}, Kinds: kinds}
	set(&m)
	check.NoError(t, metrics.MeasureStored(r, m))
	return r
}

// impatient is a clock by which all figures are old whenever they are asked for.
type impatient struct{ asked *atomic.Int64 }

func (c impatient) Now() time.Time {
	return time.Now().Add(time.Duration(c.asked.Add(1)) * 2 * time.Minute)
}

func (impatient) Moved() time.Duration { return 0 }

func counted(t *testing.T, r metrics.Registry, name string, want float64, labels ...string) {
	t.Helper()
	if got := gauge(t, r, name, labels...); got != want {
		t.Errorf("%s%v is %v; want %v", name, labels, got, want)
	}
}

func gauge(t *testing.T, r metrics.Registry, name string, labels ...string) float64 {
	t.Helper()
	value, there := lookUp(t, r, name, labels...)
	if !there {
		t.Fatalf("there is no %s%v", name, labels)
	}
	return value
}

// lookUp finds a metric with the values of labels.
func lookUp(t *testing.T, r metrics.Registry, name string, labels ...string) (float64, bool) {
	t.Helper()
	for _, f := range check.Must(r.Gather())(t) {
		for _, m := range f.GetMetric() {
			var has []string
			for _, l := range m.GetLabel() {
				has = append(has, l.GetValue())
			}
			if f.GetName() == name && slices.Equal(has, labels) {
				return m.GetGauge().GetValue(), true
			}
		}
	}
	return 0, false
}
