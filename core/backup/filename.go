package backup

import (
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// Filename is the name of a backup file, YYYYMMDD_HHMMSS.sql.gz, in UTC. A value of this type other than the empty one came
// through ParseFilename or FilenameAt, so it never holds a path.
type Filename string

const (
	nameLayout = "20060102_150405"
	nameSuffix = ".sql.gz"
	nameLength = len(nameLayout) + len(nameSuffix)
)

// ParseFilename accepts exactly the shape of the spec, section "Backup", and real dates and times only (no 31 June, no
// second 60). Anything else is INVALID_BACKUP_FILENAME.
func ParseFilename(s string) (Filename, error) {
	if len(s) != nameLength || s[len(nameLayout):] != nameSuffix {
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

// FilenameAt names a backup after the second of its start.
func FilenameAt(t time.Time) Filename {
	return Filename(t.UTC().Format(nameLayout) + nameSuffix)
}

// FreeFilename names a backup that starts at t, given the names that the database uses or has promised: of two backups in
// one second the later takes the next free second.
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

// Time is the second that the name stands for; the zero time for an empty name.
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

// Stem is the name without its suffix; the files that lie beside a backup share it.
func (f Filename) Stem() string {
	if len(f) != nameLength {
		return ""
	}
	return string(f[:len(nameLayout)])
}
