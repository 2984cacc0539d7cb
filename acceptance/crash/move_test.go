package crash_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
)

// pointsOfKind are those of a kind.
func pointsOfKind(t *testing.T, k operation.Kind) []string {
	t.Helper()
	return slices.DeleteFunc(kindPoints(t), func(p string) bool { return !strings.HasPrefix(p, string(k)+".") })
}

// commonOf are the points of a kind but for rare ones, the first of which is where a command dies that orders it.
func commonOf(t *testing.T, k operation.Kind, rare []string) []string {
	t.Helper()
	reserved := work.Reserved(k)
	points := slices.DeleteFunc(pointsOfKind(t, k), func(p string) bool { return p == reserved || slices.Contains(rare, p) })
	return append([]string{reserved}, sample.OneIn(t, 24, points)...)
}

// killedAt has an operator's command order something, and that command or the batch host die over it.
func (w *world) killedAt(t *testing.T, k operation.Kind, point string, order ...string) {
	t.Helper()
	if point == work.Reserved(k) {
		dies(t, must(w.LaunchAdmin(point, order...))(t), point)
		return
	}
	noError(t, w.Arm(w.batch.Process, point))
	must(w.Admin(soon(t), order...))(t)
	dies(t, w.batch.Process, point)
	w.hurry(t)
	noError(t, w.batch.Restart(soon(t), ""))
}

// filled is a database with seven rows.
func (w *world) filled(t *testing.T) wire.CreatedDatabase {
	t.Helper()
	made := w.newUser(t, 1).create(t, w.api, newName("moved"))
	db := w.customer(t, made.ConnectionString)
	must(db.ExecContext(soon(t), "CREATE TABLE line (n int PRIMARY KEY); INSERT INTO line SELECT generate_series(1, 7)"))(t)
	_ = db.Close()
	return made
}

// wantClean has the doctor find nothing at either of two servers.
func (w *world) wantClean(t *testing.T) {
	t.Helper()
	for _, server := range []string{w.ServerID(), "two"} {
		eventually(t, "the doctor finds nothing", func() (bool, string) {
			found, err := w.Doctor(soon(t), "--server", server, "--deep")
			return err == nil && len(found) == 0, fmt.Sprint(found, err)
		})
	}
}

// rareMove are points at which core alone kills: of a move that is closed, refused or canceled, of an overlay, of backups and
// roles that this database does not have.
var rareMove = around(moves.Kind, "overlay", "prepare", "adopt", "generation", "close", "close_target", string(move.Shutting),
	string(stage.Failing), string(stage.Canceling), string(operation.Failed), string(operation.Canceled))

// A command or a batch host that is killed over the move of a database, at whichever point, leaves it to the next one. Nothing is
// lost, and the database is at one server only.
func TestKilledOverAMove(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	other := w.beside(t, stack.Options{})
	must(w.Admin(soon(t), "server", "disable", "--server", "two"))(t) // databases are made on the first one
	for _, point := range commonOf(t, moves.Kind, rareMove) {
		made := w.filled(t)
		must(w.Admin(soon(t), "server", "enable", "--server", "two"))(t)
		w.killedAt(t, moves.Kind, point,
			"database", "move", "--database", string(made.ID), "--to", "two", "--forward", "0s", "--reason", "room is needed")
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
		w.wantClean(t)
	}
}
