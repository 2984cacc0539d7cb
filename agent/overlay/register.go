// Package overlay makes the group roles of databases with a single login, and gives and reads the rights of group roles.
package overlay

import (
	"database/sql"

	"github.com/pgherd/pgherd/agent/ledger"
)

// Overlay carries out opt-ins.
type Overlay struct {
	ledger *ledger.Ledger
	server ledger.Server
	db     *sql.DB // maintenance database
}

// New registers the commands with the ledger.
func New(l *ledger.Ledger) *Overlay {
	x := &Overlay{ledger: l, server: l.Server(), db: l.DB()}
	ledger.On(l, x.ensureOverlay)
	return x
}
