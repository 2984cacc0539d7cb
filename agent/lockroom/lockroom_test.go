package lockroom

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/fault"
)

func TestWhatATableAdmits(t *testing.T) {
	table := Table{Objects: 1600}
	check.NoError(t, table.admit(400))
	if err := table.admit(401); !fault.Has(err, fault.BackupConflict) {
		t.Errorf("more than a quarter: %v", err)
	}
	if customers, jobs := table.ForCustomers(), table.forJobs(); customers+jobs > 1000 {
		t.Errorf("customers have %d and jobs %d, and three eighths are to stay free", customers, jobs)
	}
}

// Jobs have half of the table together, and those of one account a quarter. Who waits goes on when there is room.
func TestJobsWaitForEachOther(t *testing.T) {
	var room Room
	table := Table{Objects: 1600}
	take := func(c Claim) (release func()) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		release, _ = room.Take(ctx, table, c)
		return release
	}
	first := take(Claim{By: "a", Account: "ada", Objects: 300})
	for _, c := range []struct {
		claim Claim
		fits  bool
	}{
		{Claim{By: "b", Account: "ada", Objects: 101}, false}, {Claim{By: "b", Account: "ada", Objects: 100}, true},
		{Claim{By: "c", Account: "bob", Objects: 400}, true}, {Claim{By: "d", Account: "cyd", Objects: 501}, false},
		{Claim{By: "d", Objects: 400}, true},
	} {
		release := take(c.claim)
		if release != nil {
			release()
		}
		if fits := release != nil; fits != c.fits {
			t.Errorf("%+v beside 300: %t", c.claim, fits)
		}
	}
	time.AfterFunc(20*time.Millisecond, first)
	second := check.Must(room.Take(t.Context(), table, Claim{By: "b", Account: "ada", Objects: 400}))(t)
	if by, all := room.Taken(); all != 400 || by["b"] != 400 || by["a"] != 0 {
		t.Errorf("%v, together %d", by, all)
	}
	second()
	if _, err := room.Take(t.Context(), table, Claim{By: "e", Objects: 401}); !fault.Has(err, fault.BackupConflict) {
		t.Errorf("one that fits nowhere: %v", err)
	}
}
