package backup

import "github.com/pgherd/pgherd/core/fault"

// Left is how many bytes the file of a new backup may take, of the quota that the account has for the backups of one database:
// BACKUP_STORAGE_FULL where the files that exist have used it up.
func Left(used, quota int64) (int64, error) {
	if used >= quota {
		return 0, fault.New(fault.BackupStorageFull, "the backups of this database take %d of the %d bytes that the account has "+
			"for them (its quota, not the server's disk): delete some of them", used, quota)
	}
	return quota - used, nil
}

// TooLarge is the error for a file that has become larger than Left.
func TooLarge(left int64) *fault.Error {
	return fault.New(fault.BackupStorageFull, "the backup is larger than the %d bytes that are left of the account's quota "+
		"for the backups of this database (not the server's disk): delete some of them", left)
}

// NotVerified is the error for a file that did not come back equal.
func NotVerified(why error) error {
	return fault.Wrap(why, fault.BackupNotVerified, "the backup file did not come back equal: %s", why.Error())
}
