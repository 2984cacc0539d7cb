package copies

import (
	"testing"

	"github.com/pgherd/pgherd/core/backup"
)

// Room for a copy is reserved by how large the database was, whether its file is complete or still being written. Only of an
// upload nobody knows that.
func TestTheExtentOfACopy(t *testing.T) {
	for name, c := range map[string]struct {
		set         fileSet
		least, most int64
	}{
		"being written": {fileSet{manifest: of(1000)}, 1000, 2000},
		"complete":      {fileSet{manifest: of(1000), size: 400}, 1000, 2000},
		"an upload":     {fileSet{size: 400}, 800, 25600},
	} {
		if least, most := c.set.extent(); least != c.least || most != c.most {
			t.Errorf("%s: %d to %d, not %d to %d", name, least, most, c.least, c.most)
		}
	}
}

func of(databaseBytes int64) (m backup.StoredManifest) {
	m.DatabaseBytes = databaseBytes
	return m
}
