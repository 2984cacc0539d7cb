package pgbackrest

import (
	"strings"
	"testing"
)

func TestWhichVersionAnArchiveIsOf(t *testing.T) {
	const info = "[backrest]\nbackrest-version=\"2.60.0\"\n\n[db]\ndb-id=1\ndb-system-id=7\ndb-version=\"18\"\n\n[db:history]\n" +
		`1={"db-id":7,"db-version":"18"}` + "\n"
	if major, err := majorIn([]byte(info)); err != nil || major != 18 {
		t.Errorf("%d, %v", major, err)
	}
	huge := "db-version=\"" + strings.Repeat("9", 30) + "\"\n"
	for _, other := range []string{"", huge, "[db]\ndb-id=1\n", "db-version=\"9.6\"\n", "db-version=\"../..\"\n"} {
		if major, err := majorIn([]byte(other)); err == nil {
			t.Errorf("%q: %d", other, major)
		}
	}
}
