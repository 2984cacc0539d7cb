package diskroom_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/agent/diskroom"
)

const (
	files diskroom.Disk = 1
	data  diskroom.Disk = 2
	gb                  = 1 << 30
)

func waiting(op diskroom.Claimant, p diskroom.Purpose, d diskroom.Disk, bytes int64) diskroom.Reservation {
	return diskroom.Reservation{Claimant: op, Purpose: p, Disk: d, Bytes: bytes, Waiting: true}
}

func admitted(op diskroom.Claimant, p diskroom.Purpose, d diskroom.Disk, bytes, used int64) diskroom.Reservation {
	return diskroom.Reservation{Claimant: op, Purpose: p, Disk: d, Bytes: bytes, Used: used}
}

func TestDecide(t *testing.T) {
	for what, c := range map[string]struct {
		others []diskroom.Reservation // that came earlier
		mine   []diskroom.Reservation
		spare  diskroom.Spare
		want   diskroom.Verdict
	}{
		"an empty disk": {
			nil, []diskroom.Reservation{waiting("m", diskroom.Dump, files, 10)}, diskroom.Spare{files: 10}, diskroom.Admitted,
		},
		"a byte too much": {
			nil, []diskroom.Reservation{waiting("m", diskroom.Dump, files, 11)}, diskroom.Spare{files: 10}, diskroom.Full,
		},
		"the reserve is touched": {
			nil, []diskroom.Reservation{waiting("m", diskroom.Dump, files, 1)}, diskroom.Spare{files: -5}, diskroom.Full,
		},
		"what is promised counts": {
			[]diskroom.Reservation{admitted("a", diskroom.Dump, files, 100, 0)},
			[]diskroom.Reservation{waiting("m", diskroom.Dump, files, 60)}, diskroom.Spare{files: 150}, diskroom.Wait,
		},
		"what is used counts once": {
			[]diskroom.Reservation{admitted("a", diskroom.Dump, files, 100, 90)},
			[]diskroom.Reservation{waiting("m", diskroom.Dump, files, 50)}, diskroom.Spare{files: 60}, diskroom.Admitted,
		},
		"more than promised is not owed": {
			[]diskroom.Reservation{admitted("a", diskroom.Dump, files, 100, 130)},
			[]diskroom.Reservation{waiting("m", diskroom.Dump, files, 60)}, diskroom.Spare{files: 60}, diskroom.Admitted,
		},
		"another disk does not matter": {
			[]diskroom.Reservation{admitted("a", diskroom.Copy, data, 100, 0)},
			[]diskroom.Reservation{waiting("m", diskroom.Dump, files, 60)}, diskroom.Spare{files: 60, data: 0}, diskroom.Admitted,
		},
		"purposes on one disk add up": {
			nil, []diskroom.Reservation{waiting("m", diskroom.Dump, files, 50), waiting("m", diskroom.Copy, files, 100)},
			diskroom.Spare{files: 149}, diskroom.Full,
		},
		"a copy gives its room back": {
			[]diskroom.Reservation{admitted("a", diskroom.Copy, data, 100, 100)},
			[]diskroom.Reservation{waiting("m", diskroom.Copy, data, 100)}, diskroom.Spare{data: 50}, diskroom.Wait,
		},
		"a dump's file stays": {
			[]diskroom.Reservation{admitted("a", diskroom.Dump, files, 100, 100)},
			[]diskroom.Reservation{waiting("m", diskroom.Dump, files, 100)}, diskroom.Spare{files: 50}, diskroom.Full,
		},
		"an upload gives its room back": {
			[]diskroom.Reservation{admitted("a", diskroom.Upload, files, 100, 100)},
			[]diskroom.Reservation{waiting("m", diskroom.Dump, files, 100)}, diskroom.Spare{files: 50}, diskroom.Wait,
		},
		"a small one passes a large one": {
			[]diskroom.Reservation{admitted("a", diskroom.Copy, data, 100, 0), waiting("b", diskroom.Copy, data, 100)},
			[]diskroom.Reservation{waiting("m", diskroom.Copy, data, 50)}, diskroom.Spare{data: 150}, diskroom.Admitted,
		},
		"who came earlier and fits is first": {
			[]diskroom.Reservation{admitted("a", diskroom.Copy, data, 100, 0), waiting("b", diskroom.Copy, data, 40)},
			[]diskroom.Reservation{waiting("m", diskroom.Copy, data, 20)}, diskroom.Spare{data: 150}, diskroom.Wait,
		},
		"both or none": {
			[]diskroom.Reservation{admitted("a", diskroom.Copy, data, 100, 0)},
			[]diskroom.Reservation{waiting("m", diskroom.Dump, files, 10), waiting("m", diskroom.Copy, data, 100)},
			diskroom.Spare{files: 100, data: 150}, diskroom.Wait,
		},
	} {
		if got := diskroom.Decide(append(c.others, c.mine...), "m", c.spare); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// Today's case: four verifications of 100 GB each, and 150 GB free. One is let in after the other.
func TestFourCopiesThatDoNotFitTogether(t *testing.T) {
	var all []diskroom.Reservation
	for _, op := range []diskroom.Claimant{"a", "b", "c", "d"} {
		all = append(all, waiting(op, diskroom.Copy, data, 100*gb))
	}
	free := int64(150 * gb)
	for i, r := range all {
		for j, other := range all[i:] {
			want := diskroom.Wait
			if j == 0 {
				want = diskroom.Admitted
			}
			if got := diskroom.Decide(all[i:], other.Claimant, diskroom.Spare{data: free}); got != want {
				t.Errorf("%s, while it is the turn of %s: %v, want %v", other.Claimant, r.Claimant, got, want)
			}
		}
		all[i].Waiting = false
		for _, used := range []int64{0, 40 * gb, 100 * gb} { // the disk has less and less
			all[i].Used = used
			for _, other := range all[i+1:] {
				if got := diskroom.Decide(all[i:], other.Claimant, diskroom.Spare{data: free - used}); got != diskroom.Wait {
					t.Errorf("%s, when %s has used %d: %v", other.Claimant, r.Claimant, used, got)
				}
			}
		}
	}
}

func TestExtend(t *testing.T) {
	own := admitted("m", diskroom.Dump, files, 100, 120)
	for what, c := range map[string]struct {
		other diskroom.Reservation
		spare int64
		want  int64 // 0: refused
	}{
		"room for a step":     {admitted("a", diskroom.Dump, files, 10, 10), 50, 150},
		"room for less":       {admitted("a", diskroom.Dump, files, 10, 10), 7, 127},
		"promised to another": {admitted("a", diskroom.Copy, files, 50, 0), 50, 0},
		"one who waits":       {waiting("a", diskroom.Copy, files, 50), 50, 150},
		"nothing spare":       {admitted("a", diskroom.Dump, files, 10, 10), 0, 0},
	} {
		all := []diskroom.Reservation{c.other, admitted("m", diskroom.Dump, files, 100, 20)}
		got, ok := diskroom.Extend(all, own, diskroom.Spare{files: c.spare}, 30)
		if got != c.want || ok != (c.want > 0) {
			t.Errorf("%s: %d, %v, want %d", what, got, ok, c.want)
		}
	}
}

func TestNewest(t *testing.T) {
	all := []diskroom.Reservation{
		admitted("a", diskroom.Copy, data, 1, 0), admitted("b", diskroom.Copy, data, 1, 0), waiting("c", diskroom.Copy, data, 1),
		admitted("d", diskroom.Copy, files, 1, 0), admitted("e", diskroom.Dump, data, 1, 0),
	}
	for i, want := range []bool{false, true} {
		if got := diskroom.Newest(all, all[i]); got != want {
			t.Errorf("%s: %v", all[i].Claimant, got)
		}
	}
}

// Whatever is asked, used, extended and ended in whatever order, together the admitted never use more than is spare, an answer of
// Full is final, and whoever waits is let in when the others have ended.
func TestNobodyIsPromisedWhatAnotherHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := diskroom.Spare{files: rapid.Int64Range(0, 300).Draw(t, "files"), data: rapid.Int64Range(0, 300).Draw(t, "data")}
		var all []diskroom.Reservation
		kept := diskroom.Spare{} // files of dumps that have ended
		spare := func() diskroom.Spare {
			left := diskroom.Spare{files: total[files] - kept[files], data: total[data] - kept[data]}
			for _, r := range all {
				left[r.Disk] -= r.Used
			}
			return left
		}
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				disk := rapid.SampledFrom([]diskroom.Disk{files, data}).Draw(t, "disk")
				op := diskroom.Claimant(fmt.Sprint(step))
				all = append(all, waiting(op, diskroom.Dump, files, rapid.Int64Range(1, 120).Draw(t, "dump")),
					waiting(op, diskroom.Copy, disk, rapid.Int64Range(1, 120).Draw(t, "copy")))
			case 1:
				all = letIn(all, spare())
			case 2:
				all = useMore(t, all, spare())
			case 3:
				all = endOne(t, all, kept)
			}
			left := spare()
			for _, r := range all {
				if !r.Waiting {
					left[r.Disk] -= max(0, r.Bytes-r.Used)
				}
			}
			if left[files] < 0 || left[data] < 0 {
				t.Fatalf("more is promised than there is: %v of %+v", left, all)
			}
		}
		for all = letIn(all, spare()); len(all) > 0; all = letIn(all, spare()) {
			if !slices.ContainsFunc(all, func(r diskroom.Reservation) bool { return !r.Waiting }) {
				t.Fatalf("all wait, and for nobody: %+v of %v", all, spare())
			}
			all = end(all, 0, kept)
		}
	})
}

// letIn asks for everybody who waits. Those that are told that it is full leave.
func letIn(all []diskroom.Reservation, spare diskroom.Spare) []diskroom.Reservation {
	for i := 0; i < len(all); i++ {
		if !all[i].Waiting {
			continue
		}
		op := all[i].Claimant
		switch diskroom.Decide(all, op, spare) {
		case diskroom.Admitted:
			for j := range all {
				all[j].Waiting = all[j].Waiting && all[j].Claimant != op
			}
		case diskroom.Full:
			all = append(all[:i], all[i+2:]...)
			i--
		case diskroom.Wait:
		}
	}
	return all
}

func useMore(t *rapid.T, all []diskroom.Reservation, spare diskroom.Spare) []diskroom.Reservation {
	if len(all) == 0 {
		return all
	}
	i := rapid.IntRange(0, len(all)-1).Draw(t, "who")
	if all[i].Waiting {
		return all
	}
	own := all[i]
	more := rapid.Int64Range(0, 60).Draw(t, "more")
	own.Used += min(more, own.Bytes-own.Used)
	if own.Used == own.Bytes {
		after := diskroom.Spare{files: spare[files], data: spare[data]}
		after[own.Disk] -= own.Used - all[i].Used
		if bytes, ok := diskroom.Extend(all, own, after, 25); ok {
			own.Bytes = bytes
		}
	}
	all[i] = own
	return all
}

func endOne(t *rapid.T, all []diskroom.Reservation, kept diskroom.Spare) []diskroom.Reservation {
	if len(all) == 0 {
		return all
	}
	return end(all, rapid.IntRange(0, len(all)/2-1).Draw(t, "end")*2, kept)
}

// end ends the operation whose two reservations begin at i.
func end(all []diskroom.Reservation, i int, kept diskroom.Spare) []diskroom.Reservation {
	for _, r := range all[i : i+2] {
		if r.Purpose == diskroom.Dump {
			kept[r.Disk] += r.Used
		}
	}
	return append(all[:i], all[i+2:]...)
}
