package pgbackrest

import (
	"strings"
	"testing"
)

func TestWhichServerAnArchiveIsOf(t *testing.T) {
	const info = "[backrest]\nbackrest-version=\"2.60.0\"\n\n[db]\ndb-id=1\ndb-system-id=7\ndb-version=\"18\"\n\n[db:history]\n" +
		`1={"db-id":7,"db-version":"18"}` + "\n"
	if major, folder, err := origin([]byte(info)); err != nil || major != 18 || folder != "archive/"+stanza+"/18-1" {
		t.Errorf("%d, %q, %v", major, folder, err)
	}
	huge := "db-version=\"" + strings.Repeat("9", 30) + "\"\ndb-id=1\n"
	for _, other := range []string{
		"", huge, "[db]\ndb-id=1\n", "[db]\ndb-version=\"9.6\"\ndb-id=1\n", "db-version=\"../..\"\ndb-id=1\n",
	} {
		if _, folder, err := origin([]byte(other)); err == nil {
			t.Errorf("%q: %q", other, folder)
		}
	}
}
