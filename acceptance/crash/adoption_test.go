package crash_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/adoptions"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
)

// rareAdoption are points at which core alone kills: of an adoption that the agent refuses.
var rareAdoption = around(adoptions.Kind, "close", string(stage.Failing), string(operation.Failed))

// forgotten takes the record of a database out of the metadata, as where they are of before its creation.
func (w *world) forgotten(t *testing.T, d wire.CreatedDatabase) {
	t.Helper()
	for _, s := range []string{"DELETE FROM backups WHERE database_id = $1", "DELETE FROM databases WHERE id = $1"} {
		must(w.meta.ExecContext(soon(t), s, string(d.ID)))(t)
	}
}

// adopts has an operator do something about a database that the metadata do not know, and returns the operation.
func (w *world) adopts(t *testing.T, verb string, d wire.CreatedDatabase, more ...string) string {
	t.Helper()
	done := must(w.Admin(soon(t), append([]string{
		"database", verb, "--server", w.ServerID(), "--database", d.Name, "--reason", "the metadata went back",
	}, more...)...))(t)
	return fmt.Sprint(done["operationId"])
}

// rotated gives each login of an adopted database a password that somebody knows.
func (g guest) rotated(t *testing.T, w *world) {
	t.Helper()
	for _, l := range []database.Login{database.RuntimeLogin, database.ReadonlyLogin, database.OwnerLogin} {
		must(g.user.at(w.api).Logins.Rotate(soon(t), g.db.ID, l, wire.Disconnect{ConfirmDisconnect: true},
			apiclient.IdempotencyKey("adopted-"+string(l))))(t)
	}
}

// A command or a batch host that is killed over the adoption of a database, at whichever point, leaves it to the next one. What
// customers have is never in danger, and goes on.
func TestKilledOverAnAdoption(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	reserved := work.Reserved(adoptions.Kind)
	points := slices.DeleteFunc(pointsOfKind(t, adoptions.Kind), func(p string) bool {
		return p == reserved || slices.Contains(rareAdoption, p)
	})
	for _, point := range append(sample.OneIn(t, 4, points), reserved) {
		g := newLoadedGuest(t, w, "found")
		held := g.stay(t)
		for range 2 { // so that the server has a generation that the new record has to surpass
			g.set(t, w.api, database.Restart)
		}
		_ = held.Close()
		backedUp := must(stack.BackUp(soon(t), g.user.at(w.api), g.db.ID))(t)
		w.quiet(t)
		w.forgotten(t, g.db)
		if point == reserved {
			p := must(w.LaunchAdmin(point, "database", "adopt", "--server", w.ServerID(), "--database", g.db.Name,
				"--reason", "it went back"))(t)
			dies(t, p, point)
		} else {
			noError(t, w.Arm(w.batch.Process, point))
		}
		op := w.adopts(t, "adopt", g.db)
		if point != reserved {
			dies(t, w.batch.Process, point)
			w.hurry(t)
			noError(t, w.batch.Restart(soon(t), ""))
		}
		eventually(t, "it is adopted", func() (bool, string) {
			o := must(w.Admin(soon(t), "operation", "show", "--operation", op))(t)
			return o["status"] == "succeeded", fmt.Sprint(o)
		})
		w.quiet(t)
		if again := w.adopts(t, "adopt", g.db); again != op {
			t.Errorf("asked again, it is %s and not %s", again, op)
		}
		w.logsIn(t, g.db)
		g.rotated(t, w)
		w.backupsAreAdopted(t, g, backedUp.Filename)
		w.settled(t)
	}
}

// backupsAreAdopted has the files of a database adopted, of which one can then be used as before.
func (w *world) backupsAreAdopted(t *testing.T, g guest, file string) {
	t.Helper()
	w.wantDifferences(t, []doctor.Code{doctor.FileUnknown}, nil)
	for range 2 {
		p := must(w.LaunchAdmin("", "backup", "adopt", "--database", g.db.Name, "--reason", "the metadata went back"))(t)
		noError(t, p.AwaitEnd(soon(t)))
	}
	list := must(g.user.at(w.api).Backups.List(g.db.ID).Page(soon(t), apiclient.Page{}))(t).Data
	if len(list) != 1 || string(list[0].Filename) != file || list[0].VerifiedAt == nil {
		t.Errorf("the backups are %+v", list)
	}
}

// A database that the metadata do not know is dropped as any other: with a backup, or without.
func TestAnUnknownDatabaseIsDropped(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	for _, more := range [][]string{{"--yes"}, {"--yes", "--without-backup"}} {
		g := newLoadedGuest(t, w, "found")
		w.forgotten(t, g.db)
		w.adopts(t, "drop-unknown", g.db, more...)
		becomes := func(status database.Status) {
			eventually(t, "it is "+string(status), func() (bool, string) {
				d := must(w.Admin(soon(t), "database", "show", "--database", string(g.db.ID)))(t)
				return d["status"] == string(status), fmt.Sprint(d)
			})
		}
		becomes(database.Deleted)
		w.quiet(t)
		must(w.Admin(soon(t), "database", "recover", "--database", string(g.db.ID), "--reason", "it was needed"))(t)
		becomes(database.Active)
		w.quiet(t)
		w.logsIn(t, g.db)
		g.rotated(t, w)
		w.settled(t)
	}
}
