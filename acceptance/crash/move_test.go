package crash_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
)

// movePoints are those of a move.
func movePoints(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(kindPoints(t), func(p string) bool { return !strings.HasPrefix(p, string(moves.Kind)+".") })
}

// rareMove are points at which core alone kills: of a move that is closed, refused or canceled, of an overlay, of backups and
// roles that this database does not have.
var rareMove = around(moves.Kind, "overlay", "prepare", "adopt", "generation", "close", "close_target", string(move.Shutting),
	string(stage.Failing), string(stage.Canceling), string(operation.Failed), string(operation.Canceled))

// A command or a batch host that is killed over the move of a database, at whichever point, leaves it to the next one. Nothing is
// lost, and the database is at one server only.
func TestKilledOverAMove(t *testing.T) {
	t.Parallel()
	reserved := work.Reserved(moves.Kind)
	points := slices.DeleteFunc(movePoints(t), func(p string) bool { return p == reserved || slices.Contains(rareMove, p) })
	w := startStack(t)
	other := stacktest.Start(soon(t), t, stack.Options{LeaseHold: leaseHold}, stack.CrashPoints)
	must(w.Register(soon(t), "two", other))(t)
	must(w.Admin(soon(t), "server", "disable", "--server", "two"))(t) // databases are made on the first one
	for _, point := range append(sample.OneIn(t, 24, points), reserved) {
		owner := w.newUser(t, 1)
		made := owner.create(t, w.api, newName("moved"))
		db := w.customer(t, made.ConnectionString)
		must(db.ExecContext(soon(t), "CREATE TABLE line (n int PRIMARY KEY); INSERT INTO line SELECT generate_series(1, 7)"))(t)
		_ = db.Close()
		must(w.Admin(soon(t), "server", "enable", "--server", "two"))(t)
		order := []string{
			"database", "move", "--database", string(made.ID), "--to", "two", "--forward", "0s", "--reason", "room is needed",
		}
		if point == reserved {
			dies(t, must(w.LaunchAdmin(point, order...))(t), point)
		} else {
			noError(t, w.Arm(w.batch.Process, point))
			must(w.Admin(soon(t), order...))(t)
			dies(t, w.batch.Process, point)
			w.hurry(t)
			noError(t, w.batch.Restart(soon(t), ""))
		}
		must(w.Admin(soon(t), "server", "disable", "--server", "two"))(t)
		eventually(t, "it is moved", func() (bool, string) {
			shown := must(w.Admin(soon(t), "database", "show", "--database", string(made.ID)))(t)
			return shown["server"] == "two", fmt.Sprint(point, shown)
		})
		w.quiet(t)
		var rows int
		noError(t, openOne(t, reached(t, other, made)).QueryRowContext(soon(t), "SELECT count(*) FROM line").Scan(&rows))
		if rows != 7 {
			t.Errorf("killed at %s: it has %d rows", point, rows)
		}
		for _, server := range []string{w.ServerID(), "two"} {
			eventually(t, "the doctor finds nothing", func() (bool, string) {
				found, err := w.Doctor(soon(t), "--server", server, "--deep")
				return err == nil && len(found) == 0, fmt.Sprint(found, err)
			})
		}
	}
}
