package operation

import (
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

func TestUses(t *testing.T) {
	open := []Use{
		{OperationID: "clone", DatabaseID: "shop", Backup: "file"},
		{OperationID: "restore", DatabaseID: "shop", Backup: "other", Exclusive: true},
		{OperationID: "copy", DatabaseID: "blog"},
	}
	cases := []struct {
		name     string
		deletion Use
		refused  bool
	}{
		{"one more reader of a backup", Use{DatabaseID: "shop", Backup: "file"}, false},
		{"who would delete what is read", Use{DatabaseID: "shop", Backup: "file", Exclusive: true}, true},
		{"a reader of what is changed", Use{DatabaseID: "shop", Backup: "other"}, true},
		{"another backup", Use{DatabaseID: "shop", Backup: "third", Exclusive: true}, false},
		{"a backup of that name of another database", Use{DatabaseID: "blog", Backup: "file", Exclusive: true}, false},
		{"the database of a backup in use", Use{DatabaseID: "shop", Exclusive: true}, false},
		{"one more reader of a database", Use{DatabaseID: "blog"}, false},
		{"who would change a database that is read", Use{DatabaseID: "blog", Exclusive: true}, true},
	}
	for _, c := range cases {
		if err := c.deletion.Admits(open, fault.BackupConflict); fault.Has(err, fault.BackupConflict) != c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
