package store

import (
	"testing"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// BackupKeys is the suite of ports.BackupKeys.
func BackupKeys(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a key comes back as it was stored", backupKeyComesBack},
		{"a database has one key", backupKeyIsOne},
		{"a key goes with its database", backupKeyGoes},
	})
}

func backupKeyOf(db id.DatabaseID) backup.Key {
	return backup.Key{DatabaseID: db, Sealed: []byte{0, 255, '\\', '\'', 10}}
}

func backupKeyComesBack(w *world) {
	k := backupKeyOf(w.addDatabase("shop").ID)
	w.update(writing(ports.Tx.BackupKeys, ports.BackupKeys.Add, k))
	w.equal("the key", read(w, ports.Tx.BackupKeys, ports.BackupKeys.Get, k.DatabaseID), k)
	w.missing("a key that was not made", reading(ports.Tx.BackupKeys, ports.BackupKeys.Get, w.addDatabase("other").ID))
}

func backupKeyIsOne(w *world) {
	k := backupKeyOf(w.addDatabase("shop").ID)
	w.update(writing(ports.Tx.BackupKeys, ports.BackupKeys.Add, k))
	w.fails("a second key was added", writing(ports.Tx.BackupKeys, ports.BackupKeys.Add, k))
	w.unknown("a key of no database", writing(ports.Tx.BackupKeys, ports.BackupKeys.Add, backupKeyOf(newID[id.DatabaseID]())))
}

func backupKeyGoes(w *world) {
	k := backupKeyOf(w.addDatabase("shop").ID)
	w.update(writing(ports.Tx.BackupKeys, ports.BackupKeys.Add, k))
	w.update(writing(ports.Tx.Databases, ports.Databases.Remove, k.DatabaseID))
	w.missing("the key of a database that is gone", reading(ports.Tx.BackupKeys, ports.BackupKeys.Get, k.DatabaseID))
}
