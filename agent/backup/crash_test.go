package backup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/agent/backup"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/store"
	core "github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
)

// crashEnv holds, as JSON, what a child of this test runs until it kills itself.
const crashEnv = "PGHERD_TEST_CRASH"

type crashRun struct {
	Point   string // of CrashPoints; or a stage, at whose first progress the child dies
	Root    string
	Host    string
	Port    int
	Request backup.Request
}

// runUntilCrash is the child: a backup that ends in SIGKILL.
func runUntilCrash() int {
	var r crashRun
	if err := json.Unmarshal([]byte(os.Getenv(crashEnv)), &r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	die := func(point string) {
		if point == r.Point {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	files := store.New(r.Root, store.Options{Reserve: 1, Key: backuptest.OneKey})
	if err := files.Sweep(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	agent := backuptest.NewAgent(backuptest.At(r.Host, r.Port), files)
	agent.Crash = die
	_, err := agent.Run(context.Background(), r.Request, func(stage string, percent int, _ command.Bytes) {
		if percent > 0 {
			die(stage)
		}
	})
	fmt.Fprintln(os.Stderr, "did not crash:", err)
	return 1
}

// A backup that is killed at any point is finished by the next agent, or begun anew, and leaves nothing behind.
func TestKilledAtEveryPoint(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT n, md5(n::text) AS v FROM generate_series(1, 20000) n; CREATE EXTENSION citext`)
	points := append([]string{"dumping", copies.StageVerifying}, backup.CrashPoints...)
	for _, point := range sample.OneIn(t, 16, points) {
		t.Run(point, func(t *testing.T) {
			w.T, w.Root = t, t.TempDir()
			w.kill(point)
			w.Files = w.Store(store.Options{Reserve: 1})
			next := w.NewAgent(w.Config())
			check.NoError(t, errors.Join(next.Server.EndPredecessor(t.Context()), next.Copies.Sweep(t.Context())))
			w.LeavesNothing()
			w.checkNames(point)
			result, err := w.Run(next, w.Request())
			if err != nil || result.VerifiedAt == nil || result.Manifest.Contents.Rows["public.t"] != 20000 {
				t.Fatalf("%+v, %v", result, err)
			}
			w.LeavesNothing()
			check.Must(w.Files.SweepBlobs(t.Context(), time.Now()))(t)
			if found := w.found(); len(found) != 5 {
				t.Errorf("the store holds %v", found)
			}
		})
	}
}

// kill runs the backup in a child until it kills itself at the point.
func (w *world) kill(point string) {
	w.T.Helper()
	text := check.Must(json.Marshal(crashRun{
		Point: point, Root: w.Root, Host: w.Cluster.Host(), Port: w.Cluster.Port(), Request: w.Request(),
	}))(w.T)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashEnv+"="+string(text))
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		w.T.Fatalf("not killed at %s: %v\n%s", point, err, out)
	}
}

// checkNames holds what the store lists against the commit point: the set after it, nothing before.
func (w *world) checkNames(point string) {
	w.T.Helper()
	committed := slices.Index(backup.CrashPoints, point) >= slices.Index(backup.CrashPoints, "backup.after-commit") ||
		point == copies.StageVerifying
	var want []core.Filename
	if committed {
		want = append(want, backuptest.Filename)
	}
	if names, err := w.Files.List(w.T.Context(), backuptest.DatabaseID); err != nil || !slices.Equal(names, want) {
		w.T.Errorf("killed at %s: the store lists %v, %v", point, names, err)
	}
}

// found are all blobs and files of the store.
func (w *world) found() []store.Entry {
	w.T.Helper()
	list, _, err := w.Files.Walk(w.T.Context(), "", 100)
	check.NoError(w.T, err)
	return list
}

func TestASuccessorEndsADump(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t (a int)`)
	holder := w.Open(t)
	tx := check.Must(holder.Begin())(t) // pg_dump waits for this lock
	defer tx.Rollback()
	check.Must(tx.Exec(`LOCK TABLE t IN ACCESS EXCLUSIVE MODE`))(t)
	ended := w.WaitingRun()
	successor := backuptest.NewAgent(w.Config(), w.Files)
	check.NoError(t, successor.Server.EndPredecessor(t.Context()))
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the dump succeeded")
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the dump goes on")
	}
	if err := successor.Copies.Sweep(t.Context()); err != nil { // what the predecessor was kept from removing
		t.Fatal(err)
	}
	w.LeavesNothing()
}

func TestDiscardLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT n, md5(n::text) AS v FROM generate_series(1, 20000) n`)
	for point, complete := range map[string]bool{
		"backup.after-partial": false, "backup.after-manifest-moved": false, "backup.after-file-moved": false,
		"backup.after-commit": false, "backup.verify.role-created": false, "backup.verify.proving": false,
		"backup.after-verified": true,
	} {
		w.Root = t.TempDir()
		w.kill(point)
		w.Files = w.Store(store.Options{Reserve: 1})
		next := backuptest.NewAgent(w.Config(), w.Files)
		if got, err := next.Complete(t.Context(), w.Request()); err != nil || got != complete {
			t.Errorf("%s: complete %v, %v", point, got, err)
		}
		for range 2 { // once more changes nothing
			if err := next.Discard(t.Context(), w.Request()); err != nil {
				t.Errorf("%s: %v", point, err)
			}
		}
		w.nothingLeft()
	}
}

// What was kept for a mark that cannot be read could never be removed.
func TestDiscardReadsNoMark(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t (n int)`)
	w.Backup(w.Request())
	check.NoError(t, os.WriteFile(w.Path(".verified"), []byte("{"), 0o600))
	if err := w.Agent.Discard(t.Context(), w.Request()); err != nil {
		t.Error(err)
	}
	w.nothingLeft()
}

// A file counts for its own operation, and is complete without a verification where none was asked for.
func TestAFileIsThatOfItsOperation(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t (n int)`)
	plain, verified, other := w.Request(), w.Request(), w.Request()
	plain.Verify, other.Verify, other.OperationID = false, false, "33333333-3333-4333-8333-333333333333"
	w.Backup(plain)
	for _, c := range []struct {
		what     string
		request  backup.Request
		complete bool
	}{{"without verification", plain, true}, {"with verification", verified, false}, {"of another operation", other, false}} {
		if got, err := w.Agent.Complete(t.Context(), c.request); err != nil || got != c.complete {
			t.Errorf("%s: complete %v, %v", c.what, got, err)
		}
	}
	if err := w.Agent.Discard(t.Context(), other); err != nil {
		t.Error(err)
	}
	if got, err := w.Agent.Complete(t.Context(), plain); err != nil || !got {
		t.Errorf("another operation's backup was discarded: complete %v, %v", got, err)
	}
}
