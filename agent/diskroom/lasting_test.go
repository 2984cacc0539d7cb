package diskroom_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/core/id"
)

// lasting is a reservation as that of a restore's copy.
func lasting(r diskroom.Reservation, account id.AccountID) diskroom.Reservation {
	r.Lasting = &diskroom.Lasting{Account: account}
	return r
}

// ready is a restore's copy that is whole.
func ready(op diskroom.Claimant, account id.AccountID, bytes int64, idle bool) diskroom.Reservation {
	r := lasting(admitted(op, diskroom.Copy, data, bytes, bytes), account)
	r.Lasting.Idle = idle
	return r
}

func TestAnAccountsLastingCopiesHaveHalf(t *testing.T) {
	mine := func(bytes int64) diskroom.Reservation {
		return lasting(waiting("m", diskroom.Copy, data, bytes), "mine")
	}
	for what, c := range map[string]struct {
		others []diskroom.Reservation
		asks   diskroom.Reservation
		spare  int64
		want   diskroom.Verdict
	}{
		"the first may take all":   {nil, mine(100), 100, diskroom.Admitted},
		"a second within the half": {[]diskroom.Reservation{ready("a", "mine", 20, false)}, mine(30), 80, diskroom.Admitted},
		"a second beyond it":       {[]diskroom.Reservation{ready("a", "mine", 20, false)}, mine(31), 80, diskroom.Wait},
		"one that is loaded counts": {
			[]diskroom.Reservation{lasting(admitted("a", diskroom.Copy, data, 20, 0), "mine")}, mine(31), 100, diskroom.Wait,
		},
		"one that waits does not": {
			[]diskroom.Reservation{lasting(waiting("a", diskroom.Copy, data, 200), "mine")}, mine(51), 100, diskroom.Admitted,
		},
		"larger than the half waits too": {[]diskroom.Reservation{ready("a", "mine", 20, false)}, mine(80), 80, diskroom.Wait},
		"larger than all is refused":     {[]diskroom.Reservation{ready("a", "mine", 20, false)}, mine(101), 80, diskroom.Full},
		"another account has its own":    {[]diskroom.Reservation{ready("a", "other", 40, false)}, mine(60), 60, diskroom.Admitted},
		"unknown accounts are one":       {[]diskroom.Reservation{ready("a", "", 40, false)}, lasting(mine(60), ""), 60, diskroom.Wait},
		"a verification has no share": {
			[]diskroom.Reservation{ready("a", "mine", 40, false)}, waiting("m", diskroom.Copy, data, 60), 60, diskroom.Admitted,
		},
		"nobody waits for who waits for its share": {
			[]diskroom.Reservation{ready("a", "other", 40, false), lasting(waiting("b", diskroom.Copy, data, 50), "other")},
			mine(60), 60, diskroom.Admitted,
		},
	} {
		if got := diskroom.Decide(append(c.others, c.asks), "m", diskroom.Spare{data: c.spare}); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// A copy that takes more than was promised gets no more than its account's share.
func TestALastingCopyGrowsWithinTheShare(t *testing.T) {
	own := lasting(admitted("m", diskroom.Copy, data, 20, 25), "mine")
	for what, c := range map[string]struct {
		other diskroom.Reservation
		want  int64 // 0: refused
	}{
		"alone":                    {ready("a", "other", 15, false), 45},
		"beside a small one":       {ready("a", "mine", 15, false), 35},
		"beside one with the rest": {ready("a", "mine", 30, false), 0},
	} {
		all := []diskroom.Reservation{c.other, lasting(admitted("m", diskroom.Copy, data, 20, 20), "mine")}
		got, ok := diskroom.Extend(all, own, diskroom.Spare{data: 100 - 25 - c.other.Used + 5}, 20)
		if got != c.want || ok != (c.want > 0) {
			t.Errorf("%s: %d, %v, want %d", what, got, ok, c.want)
		}
	}
}

func TestWhoGivesWay(t *testing.T) {
	mine := lasting(waiting("m", diskroom.Copy, data, 50), "mine")
	for what, c := range map[string]struct {
		others []diskroom.Reservation
		asks   diskroom.Reservation
		spare  int64
		want   diskroom.Claimant // empty: nobody
	}{
		"the first of any":      {[]diskroom.Reservation{ready("a", "x", 30, true), ready("b", "y", 30, true)}, mine, 10, "a"},
		"none that is not idle": {[]diskroom.Reservation{ready("a", "x", 60, false)}, mine, 10, ""},
		"its own before others": {[]diskroom.Reservation{ready("a", "x", 30, true), ready("b", "mine", 10, true)}, mine, 10, "b"},
		"only its own for its share": {
			[]diskroom.Reservation{ready("a", "x", 10, true), ready("b", "mine", 40, false)}, mine, 60, "",
		},
		"its own for its share":   {[]diskroom.Reservation{ready("a", "x", 10, true), ready("b", "mine", 40, true)}, mine, 60, "b"},
		"for a backup too":        {[]diskroom.Reservation{ready("a", "x", 60, true)}, waiting("m", diskroom.Copy, data, 50), 10, "a"},
		"not on another disk":     {[]diskroom.Reservation{ready("a", "x", 60, true)}, waiting("m", diskroom.Dump, files, 50), 10, ""},
		"not where there is room": {[]diskroom.Reservation{ready("a", "x", 60, true)}, mine, 50, ""},
	} {
		got, found := diskroom.GivesWay(append(c.others, c.asks), "m", diskroom.Spare{data: c.spare, files: 10})
		if got != c.want || found != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", what, got, found, c.want)
		}
	}
}

// Whatever accounts restore, an account that gets a further copy has no more than half of the disk then, and whoever waits is let
// in when idle copies have given way and the others have ended.
func TestNoAccountFillsADiskWithCopies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(1, 300).Draw(t, "total")
		var all []diskroom.Reservation
		spare := func() diskroom.Spare {
			left := total
			for _, r := range all {
				left -= r.Used
			}
			return diskroom.Spare{data: left}
		}
		for step := range rapid.IntRange(1, 30).Draw(t, "steps") {
			account := rapid.SampledFrom([]id.AccountID{"", "a", "b"}).Draw(t, "account")
			bytes := rapid.Int64Range(1, 120).Draw(t, "bytes")
			all = append(all, lasting(waiting(diskroom.Claimant(fmt.Sprint(step)), diskroom.Copy, data, bytes), account))
			all = loadOne(t, all, rapid.IntRange(0, len(all)-1).Draw(t, "who"), total, spare())
		}
		for len(all) > 0 {
			before := len(all)
			for i := range all {
				if i < len(all) {
					all = loadOne(t, all, i, total, spare())
				}
			}
			for _, r := range all {
				if whose, found := diskroom.GivesWay(all, r.Claimant, spare()); r.Waiting && found {
					all = without(all, whose)
				}
			}
			if len(all) > 0 && !all[0].Waiting { // it has become a database
				all = without(all, all[0].Claimant)
			}
			if len(all) == before {
				t.Fatalf("nobody gets on: %+v of %v", all, spare())
			}
		}
	})
}

// loadOne asks for one that waits. What is admitted is ready at once, and idle.
func loadOne(t *rapid.T, all []diskroom.Reservation, i int, total int64, spare diskroom.Spare) []diskroom.Reservation {
	own := all[i]
	if !own.Waiting {
		return all
	}
	switch diskroom.Decide(all, own.Claimant, spare) {
	case diskroom.Full:
		return without(all, own.Claimant)
	case diskroom.Admitted:
		held, copies := own.Bytes, 0
		for _, r := range all {
			if !r.Waiting && r.Lasting.Account == own.Lasting.Account {
				held, copies = held+r.Used, copies+1
			}
		}
		if copies > 0 && held > total/2 {
			t.Fatalf("an account has %d of %d: %+v", held, total, all)
		}
		own.Waiting, own.Used, own.Lasting = false, own.Bytes, &diskroom.Lasting{Account: own.Lasting.Account, Idle: true}
		return append([]diskroom.Reservation{own}, without(all, own.Claimant)...)
	case diskroom.Wait:
	}
	return all
}

func without(all []diskroom.Reservation, op diskroom.Claimant) (left []diskroom.Reservation) {
	for _, r := range all {
		if r.Claimant != op {
			left = append(left, r)
		}
	}
	return left
}
