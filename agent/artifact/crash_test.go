package artifact_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// crashEnv holds, as JSON, what a child of this test runs until it kills itself.
const crashEnv = "PGHERD_TEST_CRASH"

type crashRun struct {
	Point   string // of CrashPoints; or a stage, at whose first progress the child dies
	Root    string
	Config  artifact.Config
	Request artifact.Request
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
	agent := artifact.New(r.Config, store.New(r.Root, store.Options{Reserve: 1}))
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
	w.load(`CREATE TABLE t AS SELECT n, md5(n::text) AS v FROM generate_series(1, 20000) n; CREATE EXTENSION citext`)
	points := append([]string{artifact.StageDumping, artifact.StageVerifying}, artifact.CrashPoints...)
	for _, point := range sample.OneIn(t, 8, points) {
		t.Run(point, func(t *testing.T) {
			w.t, w.root = t, t.TempDir()
			w.kill(point)
			if w.reservations() == 0 {
				t.Error("killed with no room reserved")
			}
			w.files = w.open(store.Options{Reserve: 1})
			next := w.newAgent(w.config())
			if n := w.reservations(); n != 0 {
				t.Errorf("%d reservations after the next start", n)
			}
			if err := errors.Join(next.EndPredecessor(t.Context()), next.Sweep(t.Context())); err != nil {
				t.Fatal(err)
			}
			if left := w.leftovers(); left != "" {
				t.Errorf("after the sweep: %s", left)
			}
			w.checkSet(point)
			result, err := w.run(next, w.request())
			if err != nil || result.VerifiedAt == nil || result.Manifest.Contents.Rows["public.t"] != 20000 {
				t.Fatalf("%+v, %v", result, err)
			}
			if left := w.leftovers(); left != "" {
				t.Errorf("at the end: %s", left)
			}
			if n := w.reservations(); n != 0 {
				t.Errorf("%d reservations at the end", n)
			}
		})
	}
}

// reservations counts the rows of the ledger.
func (w *world) reservations() (n int) {
	w.t.Helper()
	db := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(w.t)
	if err := db.QueryRow(`SELECT count(*) FROM ledger.reservation`).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// kill runs the backup in a child until it kills itself at the point.
func (w *world) kill(point string) {
	w.t.Helper()
	text, err := json.Marshal(crashRun{Point: point, Root: w.root, Config: w.config(), Request: w.request()})
	if err != nil {
		w.t.Fatal(err)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashEnv+"="+string(text))
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		w.t.Fatalf("not killed at %s: %v\n%s", point, err, out)
	}
}

// checkSet holds what the store kept against the commit point: all of the set after it, nothing before.
func (w *world) checkSet(point string) {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.root, "*", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	committed := slices.Index(artifact.CrashPoints, point) >= slices.Index(artifact.CrashPoints, "backup.after-file-rename") ||
		point == artifact.StageVerifying
	names, err := w.files.List(databaseID)
	if err != nil || (len(names) == 1) != committed || (len(found) >= 3) != committed || (len(found) == 0) == committed {
		w.t.Errorf("killed at %s: the store holds %v (%v)", point, found, err)
	}
	if committed && !slices.Equal(names, []backup.Filename{filename}) {
		w.t.Errorf("names %v", names)
	}
}

func TestASuccessorEndsADump(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t (a int)`)
	holder := w.Open(t)
	tx, err := holder.Begin() // pg_dump waits for this lock
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec(`LOCK TABLE t IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	ended := w.waitingRun()
	successor := artifact.New(w.config(), w.files)
	if err := successor.EndPredecessor(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the dump succeeded")
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the dump goes on")
	}
	if err := successor.Sweep(t.Context()); err != nil { // what the predecessor was kept from removing
		t.Fatal(err)
	}
	if left := w.leftovers(); left != "" {
		t.Errorf("left: %s", left)
	}
}

func TestDiscardLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t AS SELECT n, md5(n::text) AS v FROM generate_series(1, 20000) n`)
	for point, complete := range map[string]bool{
		"backup.after-partial": false, "backup.after-manifest-rename": false, "backup.after-file-rename": false,
		"backup.verify.role-created": false, "backup.verify.proving": false, "backup.after-verified": true,
	} {
		w.root = t.TempDir()
		w.kill(point)
		w.files = w.open(store.Options{Reserve: 1})
		next := artifact.New(w.config(), w.files)
		if got, err := next.Complete(w.request()); err != nil || got != complete {
			t.Errorf("%s: complete %v, %v", point, got, err)
		}
		for range 2 { // once more changes nothing
			if err := next.Discard(t.Context(), w.request()); err != nil {
				t.Errorf("%s: %v", point, err)
			}
		}
		w.nothingLeft()
	}
}

// What was kept for a mark that cannot be read could never be removed.
func TestDiscardReadsNoMark(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t (n int)`)
	if _, err := w.run(w.agent, w.request()); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(w.root, string(databaseID), filename.Stem()+".verified.json")
	if err := os.WriteFile(mark, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.agent.Discard(t.Context(), w.request()); err != nil {
		t.Error(err)
	}
	w.nothingLeft()
}

// A file counts for its own operation, and is complete without a verification where none was asked for.
func TestAFileIsThatOfItsOperation(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t (n int)`)
	plain, verified, other := w.request(), w.request(), w.request()
	plain.Verify, other.Verify, other.OperationID = false, false, "33333333-3333-4333-8333-333333333333"
	if _, err := w.run(w.agent, plain); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what     string
		request  artifact.Request
		complete bool
	}{{"without verification", plain, true}, {"with verification", verified, false}, {"of another operation", other, false}} {
		if got, err := w.agent.Complete(c.request); err != nil || got != c.complete {
			t.Errorf("%s: complete %v, %v", c.what, got, err)
		}
	}
	if err := w.agent.Discard(t.Context(), other); err != nil {
		t.Error(err)
	}
	if got, err := w.agent.Complete(plain); err != nil || !got {
		t.Errorf("another operation's backup was discarded: complete %v, %v", got, err)
	}
}
