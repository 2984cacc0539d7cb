package agent_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// elsewhere is a clone on another server than its source's.
type elsewhere struct {
	cloning // at the clone's server
	from    *agenttest.Stack
	token   string
	ca      string
}

func elsewhereOf(from, to *agenttest.Stack, source agenttest.Wanted) *elsewhere {
	return &elsewhere{cloning: cloningOf(to, source), from: from, token: strings.Repeat("t", 40)}
}

// made has the source's agent make the file, and admit the clone's.
func (e *elsewhere) made(t testing.TB) {
	t.Helper()
	e.from.Done(t, agenttest.Told(e.clone.Operation, 1, command.AdmitPeer{
		DatabaseID: e.source.DatabaseID(), TokenSHA256: command.HashToken(e.token),
	}))
	if got := e.from.BackedUp(t, e.dump()); got.State != command.BackupDone {
		t.Fatalf("%+v", got)
	}
}

func (e *elsewhere) load() protocol.Command {
	return agenttest.Told(e.clone.Operation, 1, command.Load{
		DatabaseID: e.clone.DatabaseID(), Names: e.renamings(), Compare: true, Source: command.Source{
			DatabaseID: e.source.DatabaseID(), Filename: backup.Filename(passingName), Passing: true, AtPeer: true,
		},
		Peer: command.Peer{URL: "https://" + e.from.Config.Listen, CA: e.ca, Token: e.token},
	})
}

// filesOf are the files that pass of a database at a server.
func filesOf(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) []string {
	t.Helper()
	found := check.Must(filepath.Glob(filepath.Join(s.Config.BackupDir, "passing", w.ID, "*")))(t)
	return append(found, check.Must(filepath.Glob(filepath.Join(s.Config.BackupDir, "spool", w.ID+"*")))(t)...)
}

// opens is the status that the source's agent answers to who shows a token.
func (e *elsewhere) opens(t testing.TB, shown string) int {
	t.Helper()
	r := check.Must(http.NewRequest(http.MethodGet, "https://"+e.from.Config.Listen+"/v1/peers/"+e.clone.Operation+"/passing/"+
		passingName+"/head", http.NoBody))(t)
	r.Header.Set("Authorization", "Bearer "+shown)
	r.Header.Set(protocol.Header, strconv.Itoa(command.Protocol))
	answer := check.Must(e.from.Client.Do(r))(t)
	check.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

// The clone's agent is killed over the copy, and the clone is made in the end. The file stays at the source's.
func TestCloneOnAnotherServer(t *testing.T) {
	t.Parallel()
	from, to := agenttest.Shared(t), agenttest.CrashStack(t)
	e := elsewhereOf(from, to, from.FilledDatabase(t))
	e.ca = from.CA(t)
	check.Must(from.Owner(t, e.source).Exec("CREATE TABLE word AS SELECT 'source' AS said"))(t)
	e.made(t)
	first := to.Child(t, "")
	to.Done(t, e.ensure())
	first.Kill()
	for _, point := range []string{"agent.restore.loaded", "agent.restore.granted"} {
		to.Child(t, point).DiesOver(t, to, e.load())
	}
	to.Started(t.Context(), t)
	if got := to.Loaded(t, e.load()); got.State != command.LoadReady {
		t.Fatalf("%+v", got)
	}
	to.Done(t, e.switching())
	to.Discarded(t, e.clone, e.clone.Operation)
	to.GetsIn(t, "the clone", e.clone.Present(database.OwnerLogin))
	if said := to.InDatabase(t, e.clone, "SELECT said FROM word"); said != "source" {
		t.Errorf("the word in the clone is %q", said)
	}
	if status := e.opens(t, e.token); status != http.StatusOK {
		t.Errorf("before the operation is closed: %d", status)
	}
	from.Done(t, agenttest.Closing(e.clone.Operation))
	if status := e.opens(t, e.token); status != http.StatusUnauthorized {
		t.Errorf("after it is closed: %d", status)
	}
	for what, left := range map[string][]string{"source": filesOf(t, from, e.source), "clone": filesOf(t, to, e.clone)} {
		if len(left) > 0 {
			t.Errorf("files are left of the %s: %v", what, left)
		}
	}
}

// What is admitted stays so over a restart of the agent, under the last token, until the operation is closed.
func TestAdmissionsOutliveTheAgent(t *testing.T) {
	t.Parallel()
	s := agenttest.CrashStack(t)
	first := s.Child(t, "")
	e := elsewhereOf(s, s, s.FilledDatabase(t))
	e.made(t)
	s.Done(t, agenttest.Told(e.clone.Operation, 1, command.AdmitPeer{
		DatabaseID: e.source.DatabaseID(), TokenSHA256: command.HashToken(e.token + "2"), Generation: 2,
	}))
	first.Kill()
	s.Started(t.Context(), t)
	if old, now := e.opens(t, e.token), e.opens(t, e.token+"2"); old != http.StatusUnauthorized || now != http.StatusOK {
		t.Errorf("the former token: %d, the last one: %d", old, now)
	}
	s.Done(t, agenttest.Closing(e.clone.Operation))
	if status := e.opens(t, e.token+"2"); status != http.StatusUnauthorized {
		t.Errorf("after it is closed: %d", status)
	}
	stranger := agenttest.Want(database.Managed)
	s.RefusedFor(t, command.ReasonNotFound, agenttest.Told(stranger.Operation, 1, command.AdmitPeer{
		DatabaseID: stranger.DatabaseID(), TokenSHA256: command.HashToken(e.token),
	}))
}

// A file that the peer does not give is a failure that says so, and leaves nothing.
func TestAFileThatDoesNotCome(t *testing.T) {
	t.Parallel()
	s := agenttest.Shared(t)
	e := elsewhereOf(s, s, s.FilledDatabase(t))
	e.ca = s.CA(t)
	e.made(t)
	s.Done(t, e.ensure())
	e.token = strings.Repeat("w", 40)
	report := s.Loaded(t, e.load())
	if report.State != command.LoadFailed || report.Reason != command.ReasonFailed ||
		report.Message != "the other server does not admit this one" {
		t.Errorf("%+v", report)
	}
	if left := filesOf(t, s, e.clone); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// What is left behind of a database that is here no more is removed, but for what is kept; of one that is here, nothing is.
func TestLeaving(t *testing.T) {
	t.Parallel()
	s := agenttest.Shared(t)
	here, gone := s.FilledDatabase(t), agenttest.Want(database.Managed)
	e := elsewhereOf(s, s, here)
	e.made(t)
	s.RefusedFor(t, command.ReasonInService, agenttest.Told(e.clone.Operation, 1, command.Leave{DatabaseID: here.DatabaseID()}))
	s.Done(t, agenttest.Closing(e.clone.Operation))

	folder := filepath.Join(s.Config.BackupDir, gone.ID)
	files := func() string {
		return strings.Join(check.Must(filepath.Glob(filepath.Join(folder, "*")))(t), " ")
	}
	left := func(names ...backup.Filename) {
		t.Helper()
		check.NoError(t, os.MkdirAll(folder, 0o700))
		for _, n := range names {
			for _, ending := range []string{".set", ".a.data", ".a.schema", ".a.manifest"} {
				check.NoError(t, os.WriteFile(filepath.Join(folder, n.Stem()+ending), nil, 0o600))
			}
		}
	}
	const kept, removed = backup.Filename("20260301_120000.sql.gz"), backup.Filename("20260302_120000.sql.gz")
	departs := func(operation string) {
		t.Helper()
		check.Must(s.Super.Exec(`INSERT INTO ledger.departed VALUES ($1, $2, $3)
			ON CONFLICT (database_id) DO UPDATE SET operation_id = $2`, gone.ID, operation, agenttest.BackupKey))(t)
	}
	leave := func(operation string, keep ...backup.Filename) {
		t.Helper()
		s.Done(t, agenttest.Told(operation, 1, command.Leave{DatabaseID: gone.DatabaseID(), Kept: keep}))
	}
	keys := func() string {
		return s.One(t, "SELECT count(*)::text FROM ledger.departed WHERE database_id = $1", gone.ID)
	}

	left(kept, removed)
	departs(gone.Operation)
	leave(agenttest.NewUUID()) // of an operation by which it has not gone
	if found := files(); !strings.Contains(found, kept.Stem()) || !strings.Contains(found, removed.Stem()) {
		t.Errorf("another operation has left %s", found)
	}
	leave(gone.Operation, kept)
	if found := files(); !strings.Contains(found, kept.Stem()) || strings.Contains(found, removed.Stem()) || keys() != "1" {
		t.Errorf("left are %s, and %s keys", found, keys())
	}
	last := agenttest.NewUUID()
	departs(last)
	leave(last)
	if found := files(); found != "" || keys() != "0" {
		t.Errorf("left are %s, and %s keys", found, keys())
	}
}
