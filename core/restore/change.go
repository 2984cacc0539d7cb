package restore

import (
	"fmt"

	"github.com/pgherd/pgherd/core/fault"
)

// Change is what a restore puts in the place of what a database holds: seen once the copy is complete, before the switch.
type Change struct {
	Tables Count `json:"tables"`
	Rows   Count `json:"rows"`
	// Estimated says that some rows were not counted, which takes its time: PostgreSQL's own estimate stands for them.
	Estimated bool `json:"estimated,omitempty"`
	// Unknown says that what the database holds could not be read at all; both counts are 0 before the restore then.
	Unknown bool `json:"beforeUnknown,omitempty"`
}

// Count is a number before and after a restore.
type Count struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// shrinks reports whether more than nine tenths would be gone.
func (c Count) shrinks() bool { return c.After < (c.Before+9)/10 }

// Refusal is RESTORE_SHRINKS for a restore that would remove more than nine tenths of the rows or of the tables, or where nobody
// knows that, unless that is confirmed; else nil. A database without rows has nothing to lose.
func (c Change) Refusal(confirmed bool) *fault.Error {
	const wayOut = "; the database is as it was: if that is meant, restore with confirmShrink"
	switch {
	case confirmed || c.Rows.Before == 0 && !c.Estimated && !c.Unknown:
		return nil
	case c.Unknown:
		return fault.New(fault.RestoreShrinks, "what the database holds could not be counted; the restore would put %d tables with"+
			" %s in its place%s", c.Tables.After, c.rows(c.Rows.After), wayOut)
	case c.Tables.shrinks() || c.Rows.shrinks():
		return fault.New(fault.RestoreShrinks, "the database has %d tables with %s, and would have %d with %s after the restore%s",
			c.Tables.Before, c.rows(c.Rows.Before), c.Tables.After, c.rows(c.Rows.After), wayOut)
	}
	return nil
}

func (c Change) rows(n int64) string {
	if c.Estimated {
		return fmt.Sprintf("about %d rows", n)
	}
	return fmt.Sprintf("%d rows", n)
}
