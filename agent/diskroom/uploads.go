package diskroom

// An upload has its room from its announcement on, whether anything comes or not, and can be announced again and again. So all
// uploads together take at most half of what there is of a disk when nothing else is made: backups have the other half.

// CrowdsOut reports whether the uploads on a disk would take more than that if one had what it asks for.
func CrowdsOut(all []Reservation, asks Reservation, spare Spare) bool {
	bytes := max(asks.Bytes, asks.Used)
	for _, r := range all {
		if r.Purpose == Upload && r.Disk == asks.Disk && r.Claimant != asks.Claimant {
			bytes += max(r.Bytes, r.Used)
		}
	}
	return bytes > spare.share(all, asks.Disk)
}
