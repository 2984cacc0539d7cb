package setup

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/pgherd/pgherd/agent/pg"
)

// LedgerFormat is the number of the ledger that this program makes and uses.
const LedgerFormat = 8

// CheckLedger refuses a ledger of another format; 0 is one of before there were formats.
func CheckLedger(format int64) error {
	if format == LedgerFormat {
		return nil
	}
	return fmt.Errorf("the ledger in %s has the format %d and this program's is %d: use the program that made it; for development "+
		"state, run make clean-dev", MaintenanceDatabase, format, LedgerFormat)
}

// missingTables is what makes the tables of the ledger; empty where they are there. It refuses those of another format.
func missingTables(ctx context.Context, tx *sql.Tx) (statements string, err error) {
	there, err := pg.One[bool](ctx, tx, "SELECT pg_catalog.to_regclass('ledger.agent') IS NOT NULL")
	if err != nil {
		return "", fmt.Errorf("find out whether there is a ledger: %w", err)
	}
	if !there {
		return ledgerSQL + "INSERT INTO ledger.format (number) VALUES (" + strconv.Itoa(LedgerFormat) + ")", nil
	}
	formatted, err := pg.One[bool](ctx, tx, "SELECT pg_catalog.to_regclass('ledger.format') IS NOT NULL")
	var format int64
	if err == nil && formatted {
		format, err = pg.One[int64](ctx, tx, "SELECT number FROM ledger.format")
	}
	if err != nil {
		return "", fmt.Errorf("find out the format of the ledger: %w", err)
	}
	return "", CheckLedger(format)
}
