package agent_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/objectstore"
	"github.com/pgherd/pgherd/agent/blob/s3"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
)

// stored is a stack with an archive and backups in an object store, below a prefix.
func stored(t *testing.T, at *objectstore.Server, prefix string) *agenttest.Stack {
	t.Helper()
	s, bucket := agenttest.Archived(t), at.Config(prefix)
	s.Config.Blobs, s.Config.Bucket = check.Must(s3.New(bucket))(t), &bucket
	return s
}

// asked is the answer to a question.
func asked[R any](t *testing.T, s *agenttest.Stack, q command.Asking[R]) (answer R) {
	t.Helper()
	path, body, err := protocol.WriteQuestion(q)
	check.NoError(t, err)
	status, text, err := s.Request(q.Route().Method, path, body)
	if err != nil || status != http.StatusOK {
		t.Fatal(path, status, string(text), err)
	}
	check.NoError(t, json.Unmarshal(text, &answer))
	return answer
}

// installationOf is what the agent of a stack calls its server.
func installationOf(t *testing.T, s *agenttest.Stack) string {
	t.Helper()
	return asked[command.Capabilities](t, s, command.AskCapabilities{}).Installation
}

// A database of a server that is gone is made anew on another one as it was last, out of the object store, and keeps its backups.
func TestADatabaseOfALostServer(t *testing.T) {
	t.Parallel()
	objects := objectstore.Start(t)
	lost := stored(t, objects, "lost")
	ctx, end := context.WithCancel(t.Context())
	_, _, ended := lost.Started(ctx, t)
	lost.StartBouncer(t.Context(), t)
	lost.SendArchiveKey(t)
	w := lost.FilledDatabase(t)
	reader := w.Additional(1, role.Custom)
	lost.Done(t, reader.Prepare(1))
	lost.Done(t, reader.Open(1))
	check.Must(lost.Owner(t, w).Exec("GRANT SELECT ON things TO " + reader.Username))(t)
	made := lost.BackedUp(t, w.Backup(agenttest.NewUUID(), agenttest.BackupName, true))
	check.Eventually(t, "there is no window", func() bool { return !lost.Window(t, w).Window.Empty() })
	check.Must(lost.Owner(t, w).Exec("INSERT INTO things (name) VALUES ('last')"))(t)
	at := time.Now()
	var segment string
	check.NoError(t, lost.Super.QueryRow("SELECT pg_walfile_name(pg_switch_wal())").Scan(&segment))
	check.Eventually(t, "the last row is not stored", func() bool {
		notes := check.Must(os.ReadFile(filepath.Join(lost.Config.BackupDir, "archive", "segments")))(t)
		return strings.Contains(string(notes), segment)
	})
	gone := command.Inherit{Installation: installationOf(t, lost), Storage: "lost", Key: agenttest.ArchiveKey}
	check.NoError(t, lost.PG.Kill())
	end()
	<-ended
	check.NoError(t, os.RemoveAll(lost.Config.BackupDir))

	s := stored(t, objects, "other")
	s.Started(t.Context(), t)
	s.StartBouncer(t.Context(), t)
	s.SendArchiveKey(t)
	own := s.FilledDatabase(t)
	check.Eventually(t, "there is no window", func() bool { return !s.Window(t, own).Window.Empty() })
	for what, c := range map[string]struct {
		change        func(*command.Inherit)
		why, noBackup string
	}{
		"another prefix": {func(q *command.Inherit) { q.Storage = "elsewhere" }, "no archive of the server", "kept no backups there"},
		"another server": {func(q *command.Inherit) { q.Installation = "none" }, "no archive of the server", "and not none"},
		"another key":    {func(q *command.Inherit) { q.Key = strings.Repeat("z", command.ArchiveKeyLength) }, "pgbackrest info", ""},
	} {
		q := gone
		c.change(&q)
		found := asked[command.Heritage](t, s, q)
		if found.Until != nil || !strings.Contains(found.Why, c.why) || !strings.Contains(found.WhyNoBackups, c.noBackup) ||
			c.noBackup == "" && found.WhyNoBackups != "" {
			t.Errorf("%s: %+v", what, found)
		}
	}
	found := asked[command.Heritage](t, s, gone)
	if found.Until == nil || found.Until.Before(at.Add(-2*time.Second)) || found.WhyNoBackups != "" {
		t.Errorf("there is %+v", found)
	}

	c := cloning{s, w, w}
	c.clone.Operation = agenttest.NewUUID()
	s.Done(t, c.ensure())
	s.Done(t, reader.Prepare(1))
	file := agenttest.Told(c.clone.Operation, 1, command.Backup{
		DatabaseID: w.DatabaseID(), Filename: passingName, Passing: true, Lost: gone.Installation, SizeBytes: 8 << 20,
	})
	report := agenttest.Outcome(t, s, file, func(r command.BackupReport) bool { return r.State != command.BackupRunning })
	if report.State != command.BackupDone || report.AsOf == nil || report.AsOf.Before(at.Add(-time.Second)) {
		t.Fatalf("%+v", report)
	}
	copied := s.Loaded(t, agenttest.Told(c.clone.Operation, 1, command.Load{
		DatabaseID: w.DatabaseID(), Compare: true,
		Source: command.Source{DatabaseID: w.DatabaseID(), Filename: passingName, Passing: true},
	}))
	if copied.State != command.LoadReady || len(copied.Notes) > 0 {
		t.Fatalf("%+v", copied)
	}
	c.switched(t)
	s.Done(t, reader.Open(1))
	s.GetsIn(t, "a role", reader)
	var things, last int
	const count = "SELECT count(*), count(*) FILTER (WHERE name = 'last') FROM things"
	check.NoError(t, s.Direct(t, w.Name, reader.Username, reader.Password).QueryRow(count).Scan(&things, &last))
	if things != 2001 || last != 1 {
		t.Errorf("%d things, %d of them the last", things, last)
	}

	adopt := command.AdoptBackup{
		DatabaseID: w.DatabaseID(), Filename: agenttest.BackupName, SizeBytes: made.SizeBytes, ManifestSHA256: made.ManifestSHA256,
		Lost: gone.Installation, Turn: 1,
	}
	nothing := adopt
	nothing.Filename = "20260301_120007.sql.gz"
	again := adopt
	again.Turn = 2
	for _, c := range []struct {
		of   command.AdoptBackup
		want command.ReadingState
	}{{nothing, command.ReadingDamaged}, {adopt, command.ReadingWhole}, {again, command.ReadingWhole}} {
		if got := asked[command.BackupReading](t, s, c.of); got.State != c.want {
			t.Errorf("taking over %s: %+v", c.of.Filename, got)
		}
	}
	reread := command.RereadBackup{
		DatabaseID: w.DatabaseID(), Filename: agenttest.BackupName, SizeBytes: made.SizeBytes, ManifestSHA256: made.ManifestSHA256,
	}
	if got := asked[command.BackupReading](t, s, reread); got.State != command.ReadingWhole || got.VerifiedAt == nil {
		t.Errorf("read again: %+v", got)
	}
	never := agenttest.Told(agenttest.NewUUID(), 1, command.Backup{
		DatabaseID: own.DatabaseID(), Filename: passingName, Passing: true, Lost: gone.Installation,
	})
	s.WantBackup(t, never, command.BackupFailed, command.ReasonNotFound)
}
