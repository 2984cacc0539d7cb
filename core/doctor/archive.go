package doctor

import (
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/drill"
)

// ExamineDrill tells of the last drill of a server that could tell, nil where there was none.
func ExamineDrill(server string, last *drill.Drill) []Finding {
	if last == nil || last.Outcome != drill.Failed {
		return nil
	}
	return []Finding{{
		Code: DrillFailed, DatabaseID: last.DatabaseID, Subject: server, Want: "as of " + last.PointInTime.UTC().Format(time.RFC3339),
		Has: last.Why,
	}}
}

// ExamineArchive compares the key of the archive of a server. key is nil where it could not be opened with the key ring. An agent
// that has none is sent it.
func ExamineArchive(server string, key []byte, has command.Archive) []Finding {
	f := Finding{Code: ArchiveKeyDiffers, Subject: server, Has: has.KeyMark}
	switch {
	case key == nil:
		f.Want = "one that the key ring opens"
	case has.KeyMark == "" || has.KeyMark == command.ArchiveKeyMark(string(key)):
		return nil
	default:
		f.Want = command.ArchiveKeyMark(string(key))
	}
	return []Finding{f}
}
