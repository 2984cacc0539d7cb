// Package diskroom decides which dumps, copies and uploads get room on the disks of a server, so that together they never use
// more than is free beside the reserve.
//
// Whoever comes first is first, but one that fits passes an earlier one that does not: a small backup does not wait for a large
// one that waits for room. The large one may be passed again and again, as long as it is willing to wait.
package diskroom

import "maps"

// Disk is a file system, by the number of its device. Two folders on one file system share its room.
type Disk int64

// Purpose is what room is for.
type Purpose string

const (
	Dump   Purpose = "dump"
	Copy   Purpose = "copy"
	Upload Purpose = "upload"
	Beside Purpose = "beside" // a server beside the live one, as that was at a moment
)

// comesBack reports whether what is used of the room is free again when the reservation ends. A dump's file stays; a copy is
// dropped, and an upload removed.
func (p Purpose) comesBack() bool { return p != Dump }

// Claimant is whose a reservation is: an operation, by its ID, or something without one, such as an upload, by its own.
type Claimant string

// Reservation is room that is promised to a piece of work, or that it waits for. A claimant has at most one of each purpose.
type Reservation struct {
	Claimant Claimant
	Purpose  Purpose
	Disk     Disk
	Bytes    int64
	Used     int64 // by the work so far: what is free on the disk lacks it already
	Waiting  bool
	Lasting  *Lasting // nil: the room is free again when the work has ended
}

// open is what the work may still take.
func (r Reservation) open() int64 { return max(0, r.Bytes-r.Used) }

// Spare says how many bytes are free on each disk beside the reserve. It is negative where others have used up some of that.
type Spare map[Disk]int64

// Verdict is the answer to one who asks for room.
type Verdict int

const (
	// Wait for others to end.
	Wait Verdict = iota
	// Admitted says that there is room now.
	Admitted
	// Full says that there would be no room even if all others were over.
	Full
)

// Decide answers a claimant whose reservations are among those that wait. All of them are in the order in which they came. A
// claimant gets the room for all of its reservations, or waits for all.
func Decide(all []Reservation, asks Claimant, spare Spare) Verdict {
	mine := needs(all, asks)
	if !mine.fit(spare.alone(all, asks)) {
		return Full
	}
	left := spare.beside(all, asks)
	if !mine.fit(left) || spare.passesShare(all, asks) {
		return Wait
	}
	answered := map[Claimant]bool{}
	for _, r := range all {
		switch {
		case r.Claimant == asks: // whoever came earlier and fits has what it needs
			if mine.fit(left) {
				return Admitted
			}
			return Wait
		case r.Waiting && !answered[r.Claimant]:
			answered[r.Claimant] = true
			if n := needs(all, r.Claimant); n.fit(left) && !spare.passesShare(all, r.Claimant) {
				left.take(n)
			}
		}
	}
	return Wait
}

// Extend answers a piece of work that has used more than its reservation: how much it may use in all, which is at most step more
// than it has; false where nothing is left. It does not wait, because it holds room that others wait for.
func Extend(all []Reservation, own Reservation, spare Spare, step int64) (bytes int64, ok bool) {
	left := spare.beside(all, "")[own.Disk]
	for _, r := range all {
		if r.Claimant == own.Claimant && r.Purpose == own.Purpose {
			left += r.open()
		}
	}
	if others := held(all, own); others > 0 {
		left = min(left, spare.share(all, own.Disk)-others-own.Used)
	}
	if left <= 0 {
		return 0, false
	}
	return own.Used + min(left, step), true
}

// Newest reports whether no other admitted reservation of the same purpose and disk came later.
func Newest(all []Reservation, own Reservation) bool {
	later := false
	for _, r := range all {
		switch {
		case r.Claimant == own.Claimant && r.Purpose == own.Purpose:
			later = false
		case r.Purpose == own.Purpose && r.Disk == own.Disk && !r.Waiting:
			later = true
		}
	}
	return !later
}

// beside is what is left when all admitted work but one claimant's has taken what it was promised.
func (s Spare) beside(all []Reservation, but Claimant) Spare {
	left := maps.Clone(s)
	for _, r := range all {
		if !r.Waiting && r.Claimant != but {
			left[r.Disk] -= r.open()
		}
	}
	return left
}

// alone is what would be spare if no other work went on.
func (s Spare) alone(all []Reservation, asks Claimant) Spare {
	left := maps.Clone(s)
	for _, r := range all {
		if r.Claimant != asks && r.Purpose.comesBack() && !r.Waiting {
			left[r.Disk] += r.Used
		}
	}
	return left
}

func (s Spare) take(n need) {
	for disk, bytes := range n {
		s[disk] -= bytes
	}
}

// need is what a claimant still needs of each disk.
type need map[Disk]int64

func needs(all []Reservation, of Claimant) need {
	n := need{}
	for _, r := range all {
		if r.Claimant == of {
			n[r.Disk] += r.open()
		}
	}
	return n
}

func (n need) fit(left Spare) bool {
	for disk, bytes := range n {
		if left[disk] < bytes {
			return false
		}
	}
	return true
}
