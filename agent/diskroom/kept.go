package diskroom

import "time"

// Kept is room on the disk of the backup files for something that no operation does yet, such as an upload between two requests.
type Kept struct {
	Claimant Claimant
	Purpose  Purpose
	Bytes    int64 // in all
	Used     int64 // of them, by what is written already
	Until    time.Time
}
