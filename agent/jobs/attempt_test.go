package jobs

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// ledgerOf is a maintenance database as agent init makes it.
func ledgerOf(t *testing.T) (*cluster.Postgres, *sql.DB) {
	t.Helper()
	pg := clustertest.New(t, nil)
	if _, err := setup.Init(t.Context(), setup.Options{
		DSN: pg.URL("postgres"), CredentialsFile: filepath.Join(t.TempDir(), "credentials.json"),
		Versions: floors.Policy{Development: true}, Languages: floors.Policy{Development: true},
	}); err != nil {
		t.Fatal(err)
	}
	return pg, clustertest.Database{URL: pg.URL(setup.MaintenanceDatabase)}.Open(t)
}

// An attempt that ends when PostgreSQL has already recovered was cut short all the same.
func TestAnAttemptOverWhichPostgreSQLWentDownIsCutShort(t *testing.T) {
	pg, db := ledgerOf(t)
	r := New(db, zap.NewNop())
	for name, c := range map[string]struct {
		during func()
		cut    int
	}{
		"it stayed up": {func() {}, 0},
		"one of its sessions was killed": {func() {
			other, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			var pid int
			if err := db.QueryRow("SELECT pg_backend_pid()").Scan(&pid); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			for other.PingContext(t.Context()) == nil { // until the postmaster has noticed
				time.Sleep(time.Millisecond)
			}
		}, 1},
		"it was restarted": {func() {
			if err := pg.Restart(t.Context(), cluster.Fast); err != nil {
				t.Fatal(err)
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			failed := errors.New("failed")
			j := Job{OperationID: id.OperationID(name), Step: "a step", Payload: []byte("{}")}
			if err := r.Remember(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			_, stayedUp, err := r.entered(t.Context(), j, func() (Result, error) {
				c.during()
				if _, err := r.cutShort(context.Background(), j); err != nil { // it is up again
					t.Error(err)
				}
				return Result{}, failed
			})
			cut, read := r.cutShort(t.Context(), j)
			if stayedUp != (c.cut == 0) || !errors.Is(err, failed) || cut != c.cut || read != nil {
				t.Errorf("stayed up: %t, cut short %d times, %v, %v", stayedUp, cut, err, read)
			}
		})
	}
}

// longAway is of what an attempt has waited for.
type longAway struct{ error }

func (longAway) Away()                 {}
func (longAway) Waited() time.Duration { return 10 * time.Minute }

// What the attempts themselves wait for what is away counts, not only the pauses between them.
func TestWhatIsAwayIsWaitedForInAll(t *testing.T) {
	_, db := ledgerOf(t)
	r := New(db, zap.NewNop())
	tries := 0
	r.kinds["waits"] = kind{
		run: func(context.Context, Job, Tell) (Result, error) {
			tries++
			return Result{}, longAway{errors.New("nobody answers")}
		},
		failed: func(cause error) Result { return Result{Value: cause} },
	}
	j := Job{OperationID: "waits", Step: "a step", Kind: "waits", Payload: []byte("{}")}
	if err := r.Remember(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	w, err := r.Begin(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	<-w.done
	if result, err := w.Result(); err != nil || !IsAway(result.Value.(error)) || tries != 2 {
		t.Errorf("%+v, %v after %d attempts, not 2", result, err, tries)
	}
}

// The pause before an attempt grows with what was cut short.
func TestTheNextAttemptWaitsLonger(t *testing.T) {
	r := &Runner{}
	for cut, want := range []time.Duration{0, time.Second, 30 * time.Second} {
		if got := r.pauseAfter(cut); got != want {
			t.Errorf("after %d: %s, want %s", cut, got, want)
		}
	}
}
