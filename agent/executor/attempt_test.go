package executor

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// An attempt that ends when PostgreSQL has already recovered was cut short all the same.
func TestAnAttemptOverWhichPostgreSQLWentDownIsCutShort(t *testing.T) {
	pg, db := ledgerOf(t)
	x := &Executor{db: db}
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
			exec(t, db, backedUp, name)
			failed := errors.New("failed")
			b := Backup{OperationID: id.OperationID(name)}
			_, stayedUp, err := x.entered(t.Context(), b, func() (command.BackupReport, error) {
				c.during()
				if _, err := x.cutShort(context.Background(), b); err != nil { // it is up again
					t.Error(err)
				}
				return command.BackupReport{}, failed
			})
			cut, read := x.cutShort(t.Context(), b)
			if stayedUp != (c.cut == 0) || !errors.Is(err, failed) || cut != c.cut || read != nil {
				t.Errorf("stayed up: %t, cut short %d times, %v, %v", stayedUp, cut, err, read)
			}
		})
	}
}

// The pause before an attempt grows with what was cut short.
func TestTheNextAttemptWaitsLonger(t *testing.T) {
	x := &Executor{}
	for cut, want := range []time.Duration{0, time.Second, 30 * time.Second} {
		if got := x.pauseAfter(cut); got != want {
			t.Errorf("after %d: %s, want %s", cut, got, want)
		}
	}
}
