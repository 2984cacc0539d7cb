package pgbackrest

import "testing"

func TestTheFolderOfWAL(t *testing.T) {
	const info = "[backrest]\nbackrest-version=\"2.60.0\"\n\n[db]\ndb-id=1\ndb-system-id=7\ndb-version=\"18\"\n\n[db:history]\n" +
		`1={"db-id":7,"db-version":"18"}` + "\n"
	if folder, err := walFolder([]byte(info)); err != nil || folder != "archive/"+stanza+"/18-1" {
		t.Errorf("%q, %v", folder, err)
	}
	for _, other := range []string{"", "[db]\ndb-id=1\n", "[db]\ndb-version=\"9.6\"\ndb-id=1\n", "db-version=\"../..\"\ndb-id=1\n"} {
		if folder, err := walFolder([]byte(other)); err == nil {
			t.Errorf("%q: %q", other, folder)
		}
	}
}
