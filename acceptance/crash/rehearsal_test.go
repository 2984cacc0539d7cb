package crash_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/core/controlplane/rehearsals"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
)

// rareRehearsal are points at which core alone kills: of one that fails or is canceled, and of roles that this database does not
// have.
var rareRehearsal = around(rehearsals.Kind, "overlay", "prepare", string(stage.Failing), string(stage.Canceling),
	string(operation.Failed), string(operation.Canceled))

// A command or a batch host that is killed over the rehearsal of a database, at whichever point, leaves it to the next one. It
// comes to its end, and nothing of the copy is left.
func TestKilledOverARehearsal(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	w.beside(t, stack.Options{})
	for _, point := range commonOf(t, rehearsals.Kind, rareRehearsal) {
		must(w.Admin(soon(t), "server", "disable", "--server", "two"))(t) // databases are made on the first one
		made := w.filled(t)
		must(w.Admin(soon(t), "server", "enable", "--server", "two"))(t)
		w.killedAt(t, rehearsals.Kind, point, "database", "rehearse", "--database", string(made.ID), "--to", "two")
		eventually(t, "it is rehearsed", func() (bool, string) {
			shown := must(w.Admin(soon(t), "database", "movable", "--database", string(made.ID)))(t)
			list, _ := shown["rehearsals"].([]any)
			if len(list) != 1 {
				return false, fmt.Sprint(point, shown)
			}
			last, _ := list[0].(map[string]any)
			return last["permits"] == true, fmt.Sprint(point, shown)
		})
		w.quiet(t)
		var rows int
		noError(t, openOne(t, reached(t, w.Stack, made)).QueryRowContext(soon(t), "SELECT count(*) FROM line").Scan(&rows))
		if rows != 7 {
			t.Errorf("killed at %s: it has %d rows", point, rows)
		}
		w.wantClean(t)
	}
}
