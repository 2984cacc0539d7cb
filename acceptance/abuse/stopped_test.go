package abuse_test

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
)

// waitingWork gives an account so many databases on a server, each with a backup that waits.
const waitingWork = `WITH made AS (
		INSERT INTO databases (id, account_id, server_id, name, display_name, role_model, environment, schedule, status, created_at,
			connection_cap, size_bytes, access_generation, allowlist_generation, allowlist_applied)
		SELECT gen_random_uuid(), $1, s.id, 'waits-' || n, 'Waits', 'managed', '', 'none', 'active', now(), 0, 0, 0, 1, 0
		FROM servers s, generate_series(1, $2) n WHERE s.name = 'stopped' RETURNING *)
	INSERT INTO operations (id, account_id, database_id, server_id, kind, status, stage, progress, input, result, error_code,
		error_text, actor, request_id, created_at, cancel_requested, lease_owner, lease_epoch, attempts, not_before)
	SELECT gen_random_uuid(), account_id, id, server_id, 'backup', 'queued', 'queued', 0,
		'{"filename": "20260105_093000.sql.gz", "trigger": "manual", "verify": true}', 'null',
		'', '', 'test', 'r', now(), false, '', 0, 0, now()
	FROM made`

// stopServer has a second server whose agent is stopped, with much to do on it: a hundred backups, and as many allowlists.
func stopServer(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	second := stacktest.Beside(ctx, t, m.Stack, "stopped", stack.Options{})
	must(m.Admin(ctx, "server", "disable", "--server", second.ServerID()))(t) // what is new goes to the other
	noError(t, second.FirstAgent().Freeze())
	t.Cleanup(func() { noError(t, second.FirstAgent().Thaw()) })
	must(m.metadata(t).ExecContext(ctx, waitingWork, m.account, 100))(t)
	t.Cleanup(func() { m.forgetWaiting(t) })
	return func(t *testing.T) { expiresInTime(t, m) }
}

// forgetWaiting lets the stack go on without the second server.
func (m *mallory) forgetWaiting(t *testing.T) {
	db := m.metadata(t)
	for _, s := range []string{
		"UPDATE operations SET status = 'canceled', finished_at = now() WHERE account_id = $1 AND status IN ('queued', 'running')",
		"UPDATE databases SET allowlist_applied = allowlist_generation WHERE account_id = $1",
	} {
		if _, err := db.ExecContext(context.Background(), s, m.account); err != nil {
			t.Error(err)
		}
	}
}

// expiresWithin is how long a password may work after its validity has ended.
const expiresWithin = 10 * time.Second

// expiresInTime has a password expire on the server that works.
func expiresInTime(t *testing.T, m *mallory) {
	d := must(m.create(soon(t), "expires"))(t)
	r := must(m.createRole(soon(t), d.ID, "expires"))(t)
	db := m.metadata(t)
	began := time.Now()
	must(db.ExecContext(soon(t), "UPDATE roles SET credential_expires_at = $1 WHERE id = $2", began, r.RoleID))(t)
	for done := false; !done; time.Sleep(20 * time.Millisecond) {
		noError(t, db.QueryRowContext(soon(t), `SELECT EXISTS (SELECT FROM role_changes
			WHERE role_id = $1 AND kind = 'expire' AND status = 'completed')`, r.RoleID).Scan(&done))
	}
	t.Logf("expired after %s", time.Since(began).Round(time.Millisecond))
	if took := time.Since(began); took > expiresWithin {
		t.Errorf("expired after %s, later than %s", took.Round(time.Millisecond), expiresWithin)
	}
}
