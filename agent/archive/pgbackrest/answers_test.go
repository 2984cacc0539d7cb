package pgbackrest

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/agent/archive"
)

// The copy is one that pgBackRest writes of a server that runs.
const oneCopy = `[{"repo":[{"status":{"code":0,"message":"ok"}}],"backup":[` +
	`{"label":"20260303-120000F","type":"full","error":false,"timestamp":{"start":1772539200,"stop":1772539260},` +
	`"archive":{"start":"000000010000000000000003","stop":"000000010000000000000004"},` +
	`"info":{"size":31457280},"database-ref":[{"name":"shop","oid":16384}]}]}]`

func TestACopyThatNamesNoSegments(t *testing.T) {
	for _, archived := range []string{`{"start":null,"stop":null}`, `{}`, `{"start":"00000001","stop":"000000010000000000000004"}`} {
		text := strings.Replace(oneCopy, `{"start":"000000010000000000000003","stop":"000000010000000000000004"}`, archived, 1)
		s, err := readInfo([]byte(text))
		if list, refused := s.backups(); err != nil || refused == nil || !strings.Contains(refused.Error(), "20260303-120000F") {
			t.Errorf("%s: %v, %v, %v", archived, list, err, refused)
		}
	}
}

// Whatever the program writes, what is read of it are copies with their segments, and segments in their order, each once.
func FuzzAnswersOfTheProgram(f *testing.F) {
	for _, seed := range []string{
		oneCopy, "[]", "null", "{}", `[{"backup":[{"error":true}]}]`, `[{"repo":[{"status":{"code":99,"message":"\u0000 no"}}]}]`,
		`{"16-1/0000000100000000/000000010000000000000003-` + strings.Repeat("a", 40) + `.zst":{"type":"file","time":1772539200}}`,
		`{".":{"type":"path"},"000000010000000000000003-":{"type":"file"},"x/000000010000000000000003-a":{"type":"file","time":-1}}`,
		"[backrest]\n[db]\ndb-version=\"18\"\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		whole := func(s archive.Segment) bool {
			_, ok := archive.ParseSegment(string(s))
			return ok
		}
		if s, err := readInfo(text); err == nil {
			copies, _ := s.backups() // which may be refused
			for _, c := range copies {
				if !whole(c.First) || !whole(c.Last) {
					t.Errorf("%q has the copy %+v", text, c)
				}
			}
		}
		if files, err := readList(text); err == nil {
			list := segmentsIn(files)
			for i, s := range list {
				if !whole(s.Segment) || i > 0 && list[i-1].Segment >= s.Segment {
					t.Errorf("%q has the segments %v", text, list)
				}
			}
		}
		if major, err := majorIn(text); err == nil && major < 0 {
			t.Errorf("%q is of version %d", text, major)
		}
	})
}
