package pgbackrest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pgherd/pgherd/agent/archive"
)

const forbidden = `P00   WARN: repo1: [ProtocolError] HTTP request failed with 403 (Forbidden):
       *** Path/Query ***:
       GET /backups
       *** Request Headers ***:
       authorization: AKIDSECRET`

func TestWhatIsSaidOfAFailure(t *testing.T) {
	for name, c := range map[string]struct {
		status          int
		complaint, says string
		away, other     bool
	}{
		"a store that is away": {
			103, "P00  ERROR: [103]: unable to find a valid repository:\n       repo1: [HostConnectError] unable to connect to 's3':\n",
			"[103]: unable to find a valid repository: repo1: [HostConnectError] unable to connect to 's3':", true, false,
		},
		"a wrong secret": {103, forbidden, "P00 WARN: repo1: [ProtocolError] HTTP request failed with 403 (Forbidden):", true, false},
		"another segment": {45, "P00  ERROR: [045]: WAL file '1' already exists\nHINT: is it?\n",
			"[045]: WAL file '1' already exists", false, true},
		"another cluster": {103, "P00  ERROR: [103]: unable\n repo1: [ArchiveMismatchError] WAL file of another system",
			"[103]: unable repo1: [ArchiveMismatchError] WAL file of another system", false, true},
		"another passphrase": {
			103, "[FormatError] unable to load info file 'backup.info': FormatError: key/value found outside of section",
			"[FormatError] unable to load info file 'backup.info': FormatError: key/value found outside of section", false, false,
		},
		"nothing": {1, "", "it says nothing", false, false},
	} {
		f := newFailure("archive-push", c.status, c.complaint)
		if f.says != c.says || f.away() != c.away || errors.Is(f, archive.ErrOther) != c.other {
			t.Errorf("%s: %q, away %t, other %t", name, f.says, f.away(), f.Is(archive.ErrOther))
		}
	}
}

// Whatever the program complains of, it is one short line of text.
func FuzzComplaint(f *testing.F) {
	f.Add(forbidden)
	f.Add("\xff\x00ERROR: *** x")
	f.Fuzz(func(t *testing.T, complaint string) {
		said := spoken(complaint)
		if !utf8.ValidString(said) || strings.ContainsAny(said, "\r\n") || len([]rune(said)) > mostComplaint+3 || said == "" {
			t.Errorf("%q", said)
		}
	})
}

func TestWhichDatabaseACopyLacks(t *testing.T) {
	all := []uint32{5, 16384, 16390}
	const says = "ERROR: [080]: database to include '16384' does not exist"
	for name, c := range map[string]struct {
		err  error
		want []uint32
	}{
		"one":           {newFailure("restore", statusNoDatabase, says), []uint32{5, 16390}},
		"another":       {newFailure("restore", statusNoDatabase, "ERROR: [080]: database to include '1638' does not exist"), all},
		"another error": {newFailure("restore", statusRepository, says), all},
		"none":          {nil, all},
	} {
		if got := without(all, c.err); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d are left", name, got)
		}
	}
}
