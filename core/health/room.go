package health

import "fmt"

// LeastRoom is how many bytes of a disk the backup of the smallest database takes: with its copy, and the files for sorting.
const LeastRoom = 64 << 20

// Disk is a file system that backups need, with bytes that are free, and those that backups leave free.
type Disk struct {
	Of            string // data or backups
	Free, Reserve int64
}

// Cramped is the reason of a server where no backup has room any more, so that each is BACKUP_STORAGE_FULL; false where the
// smallest still has.
func Cramped(disks []Disk) (Reason, bool) {
	for _, d := range disks {
		if d.Free-d.Reserve < LeastRoom {
			return Reason{BackupsFull, fmt.Sprintf("no backup has room on the disk of the %s: %s are free, and backups leave %s: "+
				"make room there, or lower --backup-reserve", d.Of, Pretty(d.Free), Pretty(d.Reserve))}, true
		}
	}
	return Reason{}, false
}
