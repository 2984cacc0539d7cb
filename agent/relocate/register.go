// Package relocate takes databases out of service and puts them back, has copies take their place, and removes them for good.
package relocate

import (
	"context"
	"database/sql"

	"github.com/pgherd/pgherd/agent/databases"
	"github.com/pgherd/pgherd/agent/follow"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/overlay"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Pooler is what this package needs of PgBouncer; *pooler.Pooler implements it.
type Pooler interface {
	Sync(ctx context.Context, read pooler.Read) error
	SyncSoon(read pooler.Read)
	Reconnect(ctx context.Context, database string) error
}

// Relocator carries out the commands that change which database has a name.
type Relocator struct {
	ledger    *ledger.Ledger
	overlay   *overlay.Overlay
	databases *databases.Databases
	server    ledger.Server
	db        *sql.DB // maintenance database
	pooler    Pooler
	source    *follow.Source

	// Admitting are the statements that admit an additional role of a database that has moved here.
	Admitting func(ctx context.Context, d ledger.Database, c command.AdmitRole, open bool) ([]string, error)
	// AskForSweep hears that there is a copy that nobody wants any more.
	AskForSweep func()
	// Replaced hears of each database whose place a copy has taken, before the control plane does.
	Replaced func(id.DatabaseID)
	// RemoveFiles removes every file that there is of a database.
	RemoveFiles func(context.Context, id.DatabaseID) error
}

// New registers the commands with the ledger, what completes their operations, and what undoes a switch.
func New(l *ledger.Ledger, o *overlay.Overlay, d *databases.Databases, p Pooler, s *follow.Source) *Relocator {
	x := &Relocator{
		ledger: l, overlay: o, databases: d, server: l.Server(), db: l.DB(), pooler: p, source: s,
		AskForSweep: func() {}, Replaced: func(id.DatabaseID) {},
		RemoveFiles: func(context.Context, id.DatabaseID) error { return nil },
	}
	ledger.On(l, x.switchOver)
	ledger.On(l, x.discard)
	ledger.On(l, x.isolate)
	ledger.On(l, x.rejoin)
	ledger.On(l, x.purge)
	ledger.Completing[command.Switch](l, func(command.Switched) bool { return true })
	ledger.Completing[command.Isolate](l, func(command.None) bool { return true })
	ledger.Completing[command.Rejoin](l, func(command.Rejoined) bool { return true })
	ledger.Completing[command.Purge](l, func(command.None) bool { return true })
	ledger.On(l, x.part)
	ledger.On(l, x.serveHere)
	ledger.On(l, x.depart)
	ledger.Completing[command.Depart](l, func(command.None) bool { return true })
	l.Whether(l.HasServed)
	l.Whether(x.hasSwitched)
	l.Whether(x.hasRejoined)
	l.BeforeJobs(x.undoSwitch)
	l.BeforeJobs(x.undoPartOf)
	return x
}
