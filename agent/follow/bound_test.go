package follow_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/follow"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// What is kept for a move of which nobody has spoken for a day is dropped, with its operation still open: nothing of the log is
// kept for it any more, and whoever comes back to the move hears that.
func TestASlotOutlivesNoMove(t *testing.T) {
	t.Parallel()
	for what, over := range map[string][]string{
		"silence": {`UPDATE ledger.operation SET spoken_at = now() - interval '24 hours' WHERE id = '%OPERATION%'`},
		"too far behind": {
			`ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'`, `SELECT pg_reload_conf()`,
			`CREATE TABLE public.filler AS SELECT repeat(md5(n::text), 100) AS x FROM generate_series(1, 20000) n`,
			`SELECT pg_switch_wal()`, `CHECKPOINT`, `DROP TABLE public.filler`, `SELECT pg_switch_wal()`, `CHECKPOINT`,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := newMove(t, `CREATE TABLE entry (n int PRIMARY KEY)`)
			m.dumps(t)
			slots := `SELECT count(*)::text FROM pg_replication_slots`
			if n := m.source.One(t, slots); n != "1" {
				t.Fatalf("%s slots are kept", n)
			}
			for _, statement := range over {
				check.Must(m.source.Super.Exec(strings.ReplaceAll(statement, "%OPERATION%", m.operation)))(t)
			}
			const left = `SELECT (SELECT count(*) FROM pg_replication_slots) + (SELECT count(*) FROM ledger.followed WHERE why = '')`
			check.Eventually(t, "the slot is kept", func() bool { return m.source.One(t, "SELECT ("+left+")::text") == "0" })
			_, reason, err := m.source.Send(agenttest.Told(m.operation, m.epoch, m.parting()))
			if err != nil || reason == "" {
				t.Errorf("the parting: %q, %v", reason, err)
			}
			agenttest.Works(t, "the owner", m.source.Owner(t, m.w))
			m.source.Done(t, agenttest.Closing(m.operation))
			nothingKept(t, m.source)
		})
	}
}

// A slot waits for whoever has a transaction open on the server, of whatever database. Meanwhile it keeps the log, and that is
// bounded; after a while the move ends, and the next one can begin.
func TestASlotWaitsForNobodyForEver(t *testing.T) {
	t.Parallel()
	source, target := agenttest.Logical(t), agenttest.Logical(t)
	source.Config.BackupLimits.Dump = time.Minute
	source.Start(t)
	target.Start(t)
	m := begun(t, source, target, `CREATE TABLE entry (n int PRIMARY KEY)`)
	open := check.Must(source.Super.BeginTx(t.Context(), nil))(t)
	check.Must(open.Exec(`SELECT pg_current_xact_id()`))(t)
	var report command.BackupReport
	counted := false
	check.Eventually(t, "the wait does not come to an end", func() bool {
		report = tell(t, m, source, m.dumping())
		counted = counted || slices.Contains(check.Must(follow.Bounded(t.Context(), source.Super))(t), id.OperationID(m.operation))
		return report.State != command.BackupRunning
	})
	if !counted {
		t.Error("what is kept meanwhile is not bounded")
	}
	if report.State != command.BackupFailed || !strings.Contains(report.Message, "transactions") {
		t.Errorf("%+v", report)
	}
	check.NoError(t, open.Rollback())
	source.Done(t, agenttest.Closing(m.operation))
	nothingKept(t, source)
	m.operation = agenttest.NewUUID()
	m.dumps(t)
}

// Where no slot is left, there is no file, and the agent lives on.
func TestNoSlotIsLeft(t *testing.T) {
	t.Parallel()
	m := newMove(t, `CREATE TABLE entry (n int PRIMARY KEY)`)
	const all = `generate_series(1, current_setting('max_replication_slots')::int) n`
	check.Must(m.source.Super.Exec(`SELECT pg_create_physical_replication_slot('other_' || n) FROM ` + all))(t)
	var report command.BackupReport
	check.Eventually(t, "the file does not come to an end", func() bool {
		report = tell(t, m, m.source, m.dumping())
		return report.State != command.BackupRunning
	})
	if report.State != command.BackupFailed || report.Message == "" {
		t.Errorf("%+v", report)
	}
	check.Must(m.source.Super.Exec(`SELECT pg_drop_replication_slot('other_' || n) FROM ` + all))(t)
	m.source.Done(t, agenttest.Closing(m.operation))
	nothingKept(t, m.source)
	agenttest.Works(t, "the owner", m.source.Owner(t, m.w))
}
