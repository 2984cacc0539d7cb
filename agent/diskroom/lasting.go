package diskroom

import "github.com/pgherd/pgherd/core/id"

// Lasting is a copy that takes its room for as long as a customer likes: one that is to become a database, until it does.
type Lasting struct {
	Account id.AccountID // empty: not known; such are one account together
	// Idle says that it is whole and has not become a database for so long that it gives way to others.
	Idle bool
}

// The lasting copies of an account together take at most half of what there is of a disk when nothing else is made; a single one
// may take more, or a large database could not be restored at all. Whoever would pass the share waits until the account's others
// have ended, and nobody waits for them meanwhile.

// share is what an account may take of a disk with more than one copy.
func (s Spare) share(all []Reservation, disk Disk) int64 { return s.alone(all, "")[disk] / 2 }

// held is what the account of a reservation takes with its other lasting copies.
func held(all []Reservation, of Reservation) (bytes int64) {
	for _, r := range all {
		if r.sharesWith(of) && !r.Waiting && r.Claimant != of.Claimant {
			bytes += max(r.Bytes, r.Used)
		}
	}
	return bytes
}

func (r Reservation) sharesWith(other Reservation) bool {
	return r.Lasting != nil && other.Lasting != nil && r.Lasting.Account == other.Lasting.Account && r.Disk == other.Disk
}

// passesShare reports whether an account would have more than its share if a claimant had what it asks for.
func (s Spare) passesShare(all []Reservation, asks Claimant) bool {
	for _, r := range all {
		if r.Claimant != asks || r.Lasting == nil {
			continue
		}
		if others := held(all, r); others > 0 && others+max(r.Bytes, r.Used) > s.share(all, r.Disk) {
			return true
		}
	}
	return false
}

// GivesWay returns whose copy is to be given up for one who waits: an idle one of the same account or, unless it waits for the
// share, the first idle one of any.
func GivesWay(all []Reservation, asks Claimant, spare Spare) (whose Claimant, ok bool) {
	overShare := spare.passesShare(all, asks)
	if !overShare && needs(all, asks).fit(spare.beside(all, asks)) {
		return "", false // it waits for its turn
	}
	for _, mine := range all {
		for _, r := range all {
			switch {
			case mine.Claimant != asks || r.Disk != mine.Disk || r.Lasting == nil || !r.Lasting.Idle:
			case r.sharesWith(mine):
				return r.Claimant, true
			case !ok && !overShare:
				whose, ok = r.Claimant, true
			}
		}
	}
	return whose, ok
}
