package room_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/agent/artifact/room"
)

const (
	files room.Disk = 1
	data  room.Disk = 2
	gb              = 1 << 30
)

func waiting(op room.Claimant, p room.Purpose, d room.Disk, bytes int64) room.Reservation {
	return room.Reservation{Claimant: op, Purpose: p, Disk: d, Bytes: bytes, Waiting: true}
}

func admitted(op room.Claimant, p room.Purpose, d room.Disk, bytes, used int64) room.Reservation {
	return room.Reservation{Claimant: op, Purpose: p, Disk: d, Bytes: bytes, Used: used}
}

func TestDecide(t *testing.T) {
	for what, c := range map[string]struct {
		others []room.Reservation // that came earlier
		mine   []room.Reservation
		spare  room.Spare
		want   room.Verdict
	}{
		"an empty disk":   {nil, []room.Reservation{waiting("m", room.Dump, files, 10)}, room.Spare{files: 10}, room.Admitted},
		"a byte too much": {nil, []room.Reservation{waiting("m", room.Dump, files, 11)}, room.Spare{files: 10}, room.Full},
		"the reserve is touched": {
			nil, []room.Reservation{waiting("m", room.Dump, files, 1)}, room.Spare{files: -5}, room.Full,
		},
		"what is promised counts": {
			[]room.Reservation{admitted("a", room.Dump, files, 100, 0)},
			[]room.Reservation{waiting("m", room.Dump, files, 60)}, room.Spare{files: 150}, room.Wait,
		},
		"what is used counts once": {
			[]room.Reservation{admitted("a", room.Dump, files, 100, 90)},
			[]room.Reservation{waiting("m", room.Dump, files, 50)}, room.Spare{files: 60}, room.Admitted,
		},
		"more than promised is not owed": {
			[]room.Reservation{admitted("a", room.Dump, files, 100, 130)},
			[]room.Reservation{waiting("m", room.Dump, files, 60)}, room.Spare{files: 60}, room.Admitted,
		},
		"another disk does not matter": {
			[]room.Reservation{admitted("a", room.Copy, data, 100, 0)},
			[]room.Reservation{waiting("m", room.Dump, files, 60)}, room.Spare{files: 60, data: 0}, room.Admitted,
		},
		"purposes on one disk add up": {
			nil, []room.Reservation{waiting("m", room.Dump, files, 50), waiting("m", room.Copy, files, 100)},
			room.Spare{files: 149}, room.Full,
		},
		"a copy gives its room back": {
			[]room.Reservation{admitted("a", room.Copy, data, 100, 100)},
			[]room.Reservation{waiting("m", room.Copy, data, 100)}, room.Spare{data: 50}, room.Wait,
		},
		"a dump's file stays": {
			[]room.Reservation{admitted("a", room.Dump, files, 100, 100)},
			[]room.Reservation{waiting("m", room.Dump, files, 100)}, room.Spare{files: 50}, room.Full,
		},
		"an upload gives its room back": {
			[]room.Reservation{admitted("a", room.Upload, files, 100, 100)},
			[]room.Reservation{waiting("m", room.Dump, files, 100)}, room.Spare{files: 50}, room.Wait,
		},
		"a small one passes a large one": {
			[]room.Reservation{admitted("a", room.Copy, data, 100, 0), waiting("b", room.Copy, data, 100)},
			[]room.Reservation{waiting("m", room.Copy, data, 50)}, room.Spare{data: 150}, room.Admitted,
		},
		"who came earlier and fits is first": {
			[]room.Reservation{admitted("a", room.Copy, data, 100, 0), waiting("b", room.Copy, data, 40)},
			[]room.Reservation{waiting("m", room.Copy, data, 20)}, room.Spare{data: 150}, room.Wait,
		},
		"both or none": {
			[]room.Reservation{admitted("a", room.Copy, data, 100, 0)},
			[]room.Reservation{waiting("m", room.Dump, files, 10), waiting("m", room.Copy, data, 100)},
			room.Spare{files: 100, data: 150}, room.Wait,
		},
	} {
		if got := room.Decide(append(c.others, c.mine...), "m", c.spare); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// Today's case: four verifications of 100 GB each, and 150 GB free. One is let in after the other.
func TestFourCopiesThatDoNotFitTogether(t *testing.T) {
	var all []room.Reservation
	for _, op := range []room.Claimant{"a", "b", "c", "d"} {
		all = append(all, waiting(op, room.Copy, data, 100*gb))
	}
	free := int64(150 * gb)
	for i, r := range all {
		for j, other := range all[i:] {
			want := room.Wait
			if j == 0 {
				want = room.Admitted
			}
			if got := room.Decide(all[i:], other.Claimant, room.Spare{data: free}); got != want {
				t.Errorf("%s, while it is the turn of %s: %v, want %v", other.Claimant, r.Claimant, got, want)
			}
		}
		all[i].Waiting = false
		for _, used := range []int64{0, 40 * gb, 100 * gb} { // the disk has less and less
			all[i].Used = used
			for _, other := range all[i+1:] {
				if got := room.Decide(all[i:], other.Claimant, room.Spare{data: free - used}); got != room.Wait {
					t.Errorf("%s, when %s has used %d: %v", other.Claimant, r.Claimant, used, got)
				}
			}
		}
	}
}

func TestExtend(t *testing.T) {
	own := admitted("m", room.Dump, files, 100, 120)
	for what, c := range map[string]struct {
		other room.Reservation
		spare int64
		want  int64 // 0: refused
	}{
		"room for a step":     {admitted("a", room.Dump, files, 10, 10), 50, 150},
		"room for less":       {admitted("a", room.Dump, files, 10, 10), 7, 127},
		"promised to another": {admitted("a", room.Copy, files, 50, 0), 50, 0},
		"one who waits":       {waiting("a", room.Copy, files, 50), 50, 150},
		"nothing spare":       {admitted("a", room.Dump, files, 10, 10), 0, 0},
	} {
		all := []room.Reservation{c.other, admitted("m", room.Dump, files, 100, 20)}
		got, ok := room.Extend(all, own, room.Spare{files: c.spare}, 30)
		if got != c.want || ok != (c.want > 0) {
			t.Errorf("%s: %d, %v, want %d", what, got, ok, c.want)
		}
	}
}

func TestNewest(t *testing.T) {
	all := []room.Reservation{
		admitted("a", room.Copy, data, 1, 0), admitted("b", room.Copy, data, 1, 0), waiting("c", room.Copy, data, 1),
		admitted("d", room.Copy, files, 1, 0), admitted("e", room.Dump, data, 1, 0),
	}
	for i, want := range []bool{false, true} {
		if got := room.Newest(all, all[i]); got != want {
			t.Errorf("%s: %v", all[i].Claimant, got)
		}
	}
}

// Whatever is asked, used, extended and ended in whatever order, together the admitted never use more than is spare, an answer of
// Full is final, and whoever waits is let in when the others have ended.
func TestNobodyIsPromisedWhatAnotherHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := room.Spare{files: rapid.Int64Range(0, 300).Draw(t, "files"), data: rapid.Int64Range(0, 300).Draw(t, "data")}
		var all []room.Reservation
		kept := room.Spare{} // files of dumps that have ended
		spare := func() room.Spare {
			left := room.Spare{files: total[files] - kept[files], data: total[data] - kept[data]}
			for _, r := range all {
				left[r.Disk] -= r.Used
			}
			return left
		}
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				disk := rapid.SampledFrom([]room.Disk{files, data}).Draw(t, "disk")
				op := room.Claimant(fmt.Sprint(step))
				all = append(all, waiting(op, room.Dump, files, rapid.Int64Range(1, 120).Draw(t, "dump")),
					waiting(op, room.Copy, disk, rapid.Int64Range(1, 120).Draw(t, "copy")))
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
			if !slices.ContainsFunc(all, func(r room.Reservation) bool { return !r.Waiting }) {
				t.Fatalf("all wait, and for nobody: %+v of %v", all, spare())
			}
			all = end(all, 0, kept)
		}
	})
}

// letIn asks for everybody who waits. Those that are told that it is full leave.
func letIn(all []room.Reservation, spare room.Spare) []room.Reservation {
	for i := 0; i < len(all); i++ {
		if !all[i].Waiting {
			continue
		}
		op := all[i].Claimant
		switch room.Decide(all, op, spare) {
		case room.Admitted:
			for j := range all {
				all[j].Waiting = all[j].Waiting && all[j].Claimant != op
			}
		case room.Full:
			all = append(all[:i], all[i+2:]...)
			i--
		case room.Wait:
		}
	}
	return all
}

func useMore(t *rapid.T, all []room.Reservation, spare room.Spare) []room.Reservation {
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
		after := room.Spare{files: spare[files], data: spare[data]}
		after[own.Disk] -= own.Used - all[i].Used
		if bytes, ok := room.Extend(all, own, after, 25); ok {
			own.Bytes = bytes
		}
	}
	all[i] = own
	return all
}

func endOne(t *rapid.T, all []room.Reservation, kept room.Spare) []room.Reservation {
	if len(all) == 0 {
		return all
	}
	return end(all, rapid.IntRange(0, len(all)/2-1).Draw(t, "end")*2, kept)
}

// end ends the operation whose two reservations begin at i.
func end(all []room.Reservation, i int, kept room.Spare) []room.Reservation {
	for _, r := range all[i : i+2] {
		if r.Purpose == room.Dump {
			kept[r.Disk] += r.Used
		}
	}
	return append(all[:i], all[i+2:]...)
}
