package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// earlier takes a prepared server back to what the version before additional roles had prepared.
var earlier = []string{
	"REVOKE ADMIN OPTION FOR pg_read_all_data, pg_use_reserved_connections FROM pgherd_agent",
	"DROP FUNCTION pooler.has_verifier", "DROP FUNCTION pooler.verifier_mark",
	"DROP FUNCTION pooler.no_verifier", "DELETE FROM ledger.role WHERE part = 'additional'",
	`ALTER TABLE ledger.role DROP COLUMN connection_limit, DROP COLUMN enabled, DROP COLUMN credential_generation,
		DROP COLUMN changed_at, DROP COLUMN verifier_mark, DROP COLUMN parked, DROP COLUMN member_of,
		DROP CONSTRAINT role_part_check, ADD CONSTRAINT role_part_check
		CHECK (part IN ('owner', 'runtime', 'readonly', 'holder', 'read_group', 'write_group'))`,
	"ALTER TABLE ledger.database DROP COLUMN open, DROP COLUMN account_id, DROP COLUMN timeouts, DROP COLUMN read_only",
	"ALTER TABLE ledger.database DROP COLUMN settings_since, DROP COLUMN reconnected, DROP COLUMN renewing",
	"ALTER TABLE ledger.database DROP COLUMN isolated, DROP COLUMN rejoined_by, DROP COLUMN overlay_xact",
	"DROP TABLE pooler.shut", "ALTER ROLE pgherd_agent RESET default_transaction_read_only",
	"DROP TABLE ledger.job", "ALTER TABLE ledger.backup DROP COLUMN verify, DROP COLUMN cut_short",
	"ALTER TABLE ledger.operation DROP COLUMN spoken_at", "DROP TABLE ledger.running", "DROP TABLE ledger.copy",
	`ALTER TABLE ledger.reservation DROP COLUMN kept_until, DROP COLUMN account_id,
		ADD CONSTRAINT reservation_purpose_check CHECK (purpose = 'dump')`,
	"ALTER TABLE ledger.reservation SET UNLOGGED",
	"ALTER TABLE ledger.generation DROP COLUMN applied",
}

// An agent says what an administrator has to do about an older installation. Then its databases are as they were, open or
// stopped, and can have additional roles.
func TestInstallationOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	first := s.child(t, "")
	open, stopped, single := s.made(t, database.Managed), s.made(t, database.Managed), s.made(t, database.SingleLogin)
	s.done(t, stopped.access(2, false, true))
	begun := want(database.Managed)
	s.refusedFor(t, command.ReasonNotFound, begun.access(2, false, true))
	first.kill()
	for _, statement := range earlier {
		check.Must(s.super.Exec(statement))(t)
	}

	ctx, cancel := context.WithCancel(t.Context())
	_, log, ended := s.run(t, ctx)
	check.Eventually(t, "the agent does not say that init has to be run again", func() bool {
		for _, e := range log.All() {
			if text, _ := e.ContextMap()["error"].(string); strings.Contains(text, "run pgherd agent init again") {
				return true
			}
		}
		return false
	})
	cancel()
	check.NoError(t, <-ended)

	for range 2 {
		s.prepare(t)
	}
	if n := s.one(t, `SELECT count(*) FROM pg_class c WHERE c.oid = 'ledger.reservation'::regclass AND c.relpersistence = 'p'
		AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = c.oid AND conname = 'reservation_purpose_check')`); n != "1" {
		t.Error("reservations are as they were")
	}
	for w, want := range map[*wanted]string{&stopped: "2", &begun: "0"} {
		const query = "SELECT applied FROM ledger.generation WHERE kind = 'database.access' AND resource = $1"
		if got := s.one(t, query, databaseResource(w.id)); got != want {
			t.Errorf("generation %s of the access to %s counts as applied, want %s", got, w.name, want)
		}
	}
	s.child(t, "")
	owner := stopped.present(database.OwnerLogin)
	s.refusedFor(t, command.ReasonDatabaseClosed, owner.rotate(2, owner.renewed()))
	s.done(t, stopped.access(3, true, false))
	for _, w := range []wanted{open, stopped} {
		for _, l := range w.model.Logins() {
			s.getsIn(t, string(l), w.present(l))
		}
		s.getsIn(t, "an additional role", s.opened(t, w.additional(1, role.ReadOnly)))
	}
	s.done(t, single.optIn())
	s.getsIn(t, "a legacy role", s.opened(t, single.additional(1, role.ReadOnly)))
}

// What an agent of an earlier version has begun, and entered in its own table, goes on: a backup is resumed or closed, and
// one that was complete cannot be closed.
func TestOpenBackupsOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	first := s.child(t, "")
	locked, trapped, made := s.filledDatabase(t), s.trappedDatabase(t, "PERFORM pg_sleep(600)"), s.filledDatabase(t)
	first.kill()
	complete := made.backup(newUUID(), backupName, true)
	s.child(t, crash.BackupFinished).diesOver(t, s, complete)
	before := s.child(t, "")
	unlock := s.lockThings(t, locked)
	resumed, closed := locked.backup(newUUID(), backupName, true), trapped.backup(newUUID(), backupName, true)
	s.done(t, resumed)
	s.done(t, closed)
	s.hanging(t, 1)
	before.kill()
	check.Must(s.super.Exec(`INSERT INTO ledger.backup (operation_id, database_id, filename, verify, cut_short)
		SELECT operation_id, database_id, payload->>'filename', (payload->>'verify')::boolean, cut_short FROM ledger.job;
		DROP TABLE ledger.job`))(t)

	s.prepare(t)
	s.child(t, "")
	s.refusedFor(t, command.ReasonCompleted, closing(complete.OperationID))
	s.done(t, closing(closed.OperationID))
	s.noFiles(t, trapped)
	unlock()
	if n := s.one(t, "SELECT cut_short FROM ledger.job WHERE operation_id = $1", resumed.OperationID); n != "1" {
		t.Errorf("%s attempts of the earlier agent were cut short", n)
	}
	s.wantBackup(t, resumed, command.BackupDone, "")
	s.nothingOfBackupsLeft(t)
}
