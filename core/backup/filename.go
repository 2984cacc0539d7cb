package backup

import (
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// Filename is the name of a backup file, YYYYMMDD_HHMMSS.sql.gz, in UTC. Every non-empty value comes from ParseFilename or
// FilenameAt, so it never contains a path.
type Filename string

// FileSuffix ends the name of a backup file, and SidecarSuffix, after the same stem, that of its schema with owners and
// privileges.
const (
	FileSuffix    = ".sql.gz"
	SidecarSuffix = ".schema.sql.gz"
)

const (
	nameLayout = "20060102_150405"
	nameLength = len(nameLayout) + len(FileSuffix)
)

// ParseFilename accepts exactly the format of the spec, section "Backup", with a valid date and time (no 31 June, no second
// 60). Anything else is INVALID_BACKUP_FILENAME.
func ParseFilename(s string) (Filename, error) {
	if len(s) != nameLength || s[len(nameLayout):] != FileSuffix {
		return "", invalidFilename()
	}
	at, err := time.ParseInLocation(nameLayout, s[:len(nameLayout)], time.UTC)
	if err != nil || at.Format(nameLayout) != s[:len(nameLayout)] {
		return "", invalidFilename()
	}
	return Filename(s), nil
}

func invalidFilename() error {
	return fault.New(fault.InvalidBackupFilename, "a backup file is named YYYYMMDD_HHMMSS.sql.gz")
}

// FilenameAt returns the name of a backup that starts at the given time, to the second.
func FilenameAt(t time.Time) Filename {
	return Filename(t.UTC().Format(nameLayout) + FileSuffix)
}

// FreeFilename names a backup that starts at t, given the names that its database already uses or has reserved: the second of
// two backups in one second takes the next free second.
func FreeFilename(t time.Time, taken []Filename) Filename {
	used := make(map[Filename]bool, len(taken))
	for _, name := range taken {
		used[name] = true
	}
	for {
		name := FilenameAt(t)
		if !used[name] {
			return name
		}
		t = t.Add(time.Second)
	}
}

// Time returns the time in the name; the zero time for an empty name.
func (f Filename) Time() time.Time {
	if len(f) != nameLength {
		return time.Time{}
	}
	t, err := time.ParseInLocation(nameLayout, string(f[:len(nameLayout)]), time.UTC)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Stem returns the name without its suffix; the companion files of a backup share it.
func (f Filename) Stem() string {
	if len(f) != nameLength {
		return ""
	}
	return string(f[:len(nameLayout)])
}
