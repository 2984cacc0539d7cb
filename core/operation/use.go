package operation

import (
	"slices"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Use is a thing that an operation uses, for as long as it is open, beside its own database: another database, or a backup.
type Use struct {
	OperationID id.OperationID `db:"operation_id"`
	DatabaseID  id.DatabaseID  `db:"database_id"`
	Backup      string         `db:"backup"` // the file's name; empty: the database itself
	Exclusive   bool           `db:"exclusive"`
}

// excludes reports whether two operations cannot use the same thing so.
func (u Use) excludes(other Use) bool {
	return u.DatabaseID == other.DatabaseID && u.Backup == other.Backup && (u.Exclusive || other.Exclusive)
}

// Admits decides whether a thing may be used so beside the uses of the open operations: code where it may not. Whoever would
// delete or change a thing asks for its exclusive use. The caller holds the lock of the thing's database.
func (u Use) Admits(open []Use, code fault.Code) error {
	i := slices.IndexFunc(open, u.excludes)
	switch {
	case i < 0:
		return nil
	case u.Backup != "":
		return fault.New(code, "operation %s uses the backup", open[i].OperationID)
	}
	return fault.New(code, "operation %s uses the database", open[i].OperationID)
}
