package follow_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

func TestMain(m *testing.M) { os.Exit(agenttest.Main(m)) }

const fileName = backup.Filename("20261121_065349.sql.gz")

// move is a database on its way from one server to another one.
type move struct {
	source, target *agenttest.Stack
	w              agenttest.Wanted
	operation      string
	token          string
	epoch          int64
	parted         command.Parted
}

// newMove makes two servers with an agent each in this process, and a database on the first, in which its owner runs statements.
func newMove(t *testing.T, statements ...string) *move {
	t.Helper()
	source, target := agenttest.Logical(t), agenttest.Logical(t)
	source.Start(t)
	target.Start(t)
	return begun(t, source, target, statements...)
}

func begun(t *testing.T, source, target *agenttest.Stack, statements ...string) *move {
	t.Helper()
	m := &move{
		source: source, target: target, w: source.Made(t, database.Managed), operation: agenttest.NewUUID(), epoch: 1,
		token: strings.Repeat("t", 40),
	}
	owner := source.Owner(t, m.w)
	defer owner.Close()
	for _, s := range statements {
		check.Must(owner.Exec(s))(t)
	}
	return m
}

// tell sends a command of the operation.
func tell[R any](t *testing.T, m *move, to *agenttest.Stack, c command.Returning[R]) (result R) {
	t.Helper()
	check.NoError(t, json.Unmarshal(to.Done(t, agenttest.Told(m.operation, m.epoch, c)), &result))
	return result
}

// loads has the target be what the source is at a moment.
func (m *move) loads(t *testing.T) {
	t.Helper()
	m.prepares(t)
	m.dumps(t)
	m.fills(t)
	tell(t, m, m.target, m.switching())
}

func (m *move) prepares(t *testing.T) {
	t.Helper()
	var closed command.EnsureDatabase
	create := m.w.Create()
	check.NoError(t, json.Unmarshal(create.Payload, &closed))
	closed.Closed, closed.BackupKey = true, agenttest.BackupKey
	tell(t, m, m.target, closed)
	tell(t, m, m.source, command.AdmitPeer{DatabaseID: m.id(), TokenSHA256: command.HashToken(m.token), Generation: 1})
}

func (m *move) dumping() command.Backup {
	return command.Backup{DatabaseID: m.id(), Filename: fileName, Passing: true, Followed: true}
}

func (m *move) dumps(t *testing.T) {
	t.Helper()
	m.file(t, m.source, m.dumping())
}

func (m *move) fills(t *testing.T) {
	t.Helper()
	load := command.Load{
		DatabaseID: m.id(), Moving: true, Peer: m.peer(t),
		Source: command.Source{DatabaseID: m.id(), Filename: fileName, Passing: true, AtPeer: true},
	}
	check.Eventually(t, "the copy does not come to an end", func() bool {
		report := tell(t, m, m.target, load)
		if report.State == command.LoadFailed {
			t.Fatalf("%+v", report)
		}
		return report.State == command.LoadReady
	})
}

func (m *move) switching() command.Switch { return command.Switch{DatabaseID: m.id(), Moving: true} }

func (m *move) id() id.DatabaseID { return m.w.DatabaseID() }

func (m *move) peer(t *testing.T) command.Peer {
	t.Helper()
	return command.Peer{URL: "https://" + m.source.Config.Listen, CA: m.source.CA(t), Token: m.token}
}

func (m *move) file(t *testing.T, at *agenttest.Stack, c command.Backup) (report command.BackupReport) {
	t.Helper()
	check.Eventually(t, "the file does not come to an end", func() bool {
		report = tell(t, m, at, c)
		return report.State != command.BackupRunning
	})
	if report.State != command.BackupDone {
		t.Fatalf("%+v", report)
	}
	return report
}

func (m *move) following(t *testing.T) command.Follow {
	t.Helper()
	return command.Follow{DatabaseID: m.id(), Peer: m.peer(t)}
}

// follows waits until little is missing. A server that is not reached at once is asked again, as by the control plane.
func (m *move) follows(t *testing.T) {
	t.Helper()
	check.Eventually(t, "the target stays behind", func() bool {
		var report command.FollowReport
		result, reason, err := m.target.Send(agenttest.Told(m.operation, m.epoch, m.following(t)))
		if agenttest.IsForLater(reason) {
			return false
		}
		if err != nil || reason != "" || json.Unmarshal(result, &report) != nil || report.State == command.FollowFailed {
			t.Fatalf("%s %v: %+v", reason, err, report)
		}
		return report.State == command.FollowedNear
	})
}

func (m *move) parting() command.Part { return command.Part{DatabaseID: m.id()} }

func (m *move) taking() command.Take { return command.Take{DatabaseID: m.id(), Parted: m.parted} }

func (m *move) serving() command.Serve {
	return command.Serve{DatabaseID: m.id(), Open: true, Generation: 2}
}

func (m *move) departing() command.Depart { return command.Depart{DatabaseID: m.id()} }

// nothingKept checks that nothing of what keeps changes, or follows them, is left on a server.
func nothingKept(t *testing.T, s *agenttest.Stack) {
	t.Helper()
	const left = `SELECT coalesce(string_agg(what, ', '), '') FROM (
		SELECT 'slot ' || slot_name AS what FROM pg_replication_slots
		UNION ALL SELECT 'role ' || rolname FROM pg_roles WHERE rolname LIKE 'move\_%'
		UNION ALL SELECT 'subscription ' || subname FROM pg_subscription
		UNION ALL SELECT 'origin ' || roname FROM pg_replication_origin
		UNION ALL SELECT 'row of followed ' || operation_id FROM ledger.followed
		UNION ALL SELECT 'row of following ' || operation_id FROM ledger.following
		UNION ALL SELECT 'row of parted ' || operation_id FROM ledger.parted) every`
	if got := s.One(t, left); got != "" {
		t.Errorf("there is still %s", got)
	}
}
