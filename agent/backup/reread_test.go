package backup_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/backup"
	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/store"
	core "github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
)

// slow is a folder whose blobs are not given out while it is held.
type slow struct {
	*blob.Folder
	held chan struct{}
	deaf bool // to the end of a context
}

func (s *slow) Open(ctx context.Context, name string) (io.ReadCloser, blob.Info, error) {
	over := ctx.Done()
	if s.deaf {
		over = nil
	}
	select {
	case <-s.held:
	case <-over:
		return nil, blob.Info{}, ctx.Err()
	}
	return s.Folder.Open(ctx, name)
}

// reading is an agent's readings of one backup in a folder, with the question for it.
type reading struct {
	*backup.Readings
	blobs *slow
	q     command.RereadBackup
}

func newReading(t *testing.T) reading {
	t.Helper()
	root := t.TempDir()
	blobs := &slow{Folder: blob.NewFolder(root), held: make(chan struct{})}
	files := store.New(root, store.Options{Blobs: blobs, Reserve: 1, Key: backuptest.OneKey})
	check.NoError(t, files.Sweep())
	draft := check.Must(files.Begin(t.Context(), backuptest.DatabaseID, backuptest.Filename))(t)
	m := core.Manifest{
		FormatVersion: 3, DatabaseID: backuptest.DatabaseID, OperationID: backuptest.OperationID, Filename: backuptest.Filename,
	}
	for digest, create := range map[*core.FileDigest]func() (*store.File, error){&m.File: draft.Data, &m.Sidecar: draft.Sidecar} {
		file := check.Must(create())(t)
		check.Must(file.Write([]byte("text")))(t)
		*digest = check.Must(file.Finish())(t)
	}
	stored := check.Must(draft.Prepare(m))(t)
	check.NoError(t, draft.Commit(t.Context(), func(string) {}))
	x := reading{backup.NewReadings(files, nil, zap.NewNop()), blobs, command.RereadBackup{
		DatabaseID: m.DatabaseID, Filename: m.Filename, SizeBytes: 4, ManifestSHA256: stored.SHA256, Turn: 1,
	}}
	x.Wait = 50 * time.Millisecond
	return x
}

func (x reading) finds(t *testing.T, q command.RereadBackup, state command.ReadingState, why string) {
	t.Helper()
	got, err := x.Reread(t.Context(), q)
	if err != nil || got.State != state || !strings.Contains(got.Why, why) {
		t.Errorf("turn %d: %+v, %v; want %s, %q", q.Turn, got, err, state, why)
	}
}

// One backup is read at a time. A question of the same turn tells of the same reading, as long as no other has begun.
func TestOneBackupIsReadAtATime(t *testing.T) {
	x := newReading(t)
	go x.Run(t.Context())
	second := x.q
	second.Turn++
	x.finds(t, x.q, command.ReadingRunning, "")
	if _, err := x.Reread(t.Context(), second); !command.RefusedFor(err, command.ReasonCrowded) {
		t.Errorf("another one meanwhile: %v", err)
	}
	x.Wait = time.Minute
	close(x.blobs.held)
	for range 2 {
		x.finds(t, x.q, command.ReadingWhole, "")
	}
	second.ManifestSHA256 = strings.Repeat("0", 64)
	x.finds(t, second, command.ReadingDamaged, "manifest")
	x.finds(t, x.q, command.ReadingWhole, "")
}

// A reading ends when it takes too long, and with the agent; and where it cannot be ended, who asks is told so.
func TestAReadingThatHangs(t *testing.T) {
	x := newReading(t)
	x.Limit = func(int64) time.Duration { return 10 * time.Millisecond }
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { x.Run(ctx); close(ended) }()
	x.finds(t, x.q, command.ReadingUnsure, "took longer than")
	x.Limit = func(int64) time.Duration { return time.Hour }
	x.q.Turn++
	x.finds(t, x.q, command.ReadingRunning, "")
	end()
	<-ended
	x.finds(t, x.q, command.ReadingUnsure, "canceled")

	x = newReading(t)
	x.blobs.deaf, x.Limit = true, func(int64) time.Duration { return -time.Hour }
	go x.Run(t.Context())
	x.finds(t, x.q, command.ReadingUnsure, "hangs")
	close(x.blobs.held)
}
