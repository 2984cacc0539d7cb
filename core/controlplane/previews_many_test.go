package controlplane_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
)

// openedMany makes the previews of so many refs.
func (w *world) openedMany(c access.Caller, n int) []id.DatabaseID {
	w.t.Helper()
	made := make([]id.DatabaseID, n)
	work, all := make(chan int, n), sync.WaitGroup{}
	for i := range n {
		work <- i
	}
	close(work)
	for range 4 {
		all.Go(func() {
			for i := range work {
				o, err := w.Previews.Open(w.ctx, c, ofRef(fmt.Sprint("ref ", i)))
				if err != nil {
					w.t.Error(err)
				}
				made[i] = o.Preview.DatabaseID
			}
		})
	}
	all.Wait()
	return made
}

// roomy is a customer with a pipeline who may have any number of databases.
func (w *world) roomy(email string) access.Caller {
	w.t.Helper()
	a, _, _ := w.newAccount(email, account.Pro)
	most := 10_000
	must(w.Operator.ChangeAccount(w.ctx, a.ID, func(a *account.Account) { a.MaxDatabases = &most }))(w.t)
	return w.pipeline(a, "web")
}

// standing are the previews of a pipeline that are not deleted, and how many of them are being deleted.
func (w *world) standing(c access.Caller) (left, deleting int) {
	w.t.Helper()
	for _, r := range w.listed(c) {
		if left++; r.Status == database.Deleting {
			deleting++
		}
	}
	return left, deleting
}

// Many leases of one account end at the same time. Of the deletions that the service begins one is open at a time on the
// server, so the backup of a customer's database waits for no more than a step of it; another account's few previews end among
// the first; and all are deleted in the end, each once.
func TestManyLeasesEndAtOnce(t *testing.T) {
	many, few := 200, 3
	if n, err := strconv.Atoi(os.Getenv("PGHERD_PREVIEWS")); err == nil {
		many = n
	} else if !sample.Whole() {
		many = 60
	}
	w := newWorld(t)
	w.deletable() // a customer's database
	must(w.Operator.ChangeServer(w.ctx, w.machine.ID, func(s *server.Server) { s.Capacity = many + 10 }))(t)
	big, small := w.roomy("big@example.org"), w.roomy("small@example.org")
	all := append(w.openedMany(big, many), w.openedMany(small, few)...)
	w.clock.Advance(24 * time.Hour)

	var beside *operation.Operation
	seconds, steps, backups, fewAfter := 0, 0, 0, 0
	for left := 1; left > 0; seconds++ {
		if seconds > 30*len(all) {
			t.Fatalf("%d are left after %d seconds", left, seconds)
		}
		w.clock.Advance(time.Second)
		w.rounds(w.ControlPlane)
		if beside == nil && seconds%7 == 0 {
			o := must(w.Backups.Start(w.ctx, w.reached(w.source())))(t)
			beside, steps = &o, 0
		}
		for must(w.Work.RunNext(w.ctx))(t) {
			if steps++; beside != nil && w.operation(beside.ID).Status != operation.Queued {
				if steps > 2 {
					t.Fatalf("a customer's backup was begun as the %dth step", steps)
				}
				backups++
				beside = nil
			}
		}
		ofBig, deletingBig := w.standing(big)
		ofSmall, deletingSmall := w.standing(small)
		if left = ofBig + ofSmall; deletingBig+deletingSmall > 1 {
			t.Fatalf("%d deletions are open at once", deletingBig+deletingSmall)
		}
		if ofSmall == 0 && fewAfter == 0 {
			fewAfter = len(all) - left
		}
	}
	t.Logf("%d leases ended in %d seconds of the clock, beside %d backups of a customer; those of the other account were among the "+
		"first %d", len(all), seconds, backups, fewAfter)
	if fewAfter > 2*few+1 || backups == 0 {
		t.Errorf("the other account's were among the first %d, beside %d backups", fewAfter, backups)
	}
	for _, db := range all {
		equal(t, "deletions", count(w.activity(db), audit.DeleteRequested), 1)
	}
	w.wantFindings()
}
