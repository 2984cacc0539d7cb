package executor

import (
	"context"
	"database/sql"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/databases"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/overlay"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Executor carries out commands. Those of one database or one operation run one after the other, all others in parallel.
type Executor struct {
	ledger    *ledger.Ledger
	overlay   *overlay.Overlay
	databases *databases.Databases
	server    ledger.Server
	db        *sql.DB // maintenance database
	guarding  *sql.DB // one connection, for Guard
	pooler    Pooler
	log       *zap.Logger
	seldom    loop.Seldom // for what a customer can bring about again and again

	unwanted chan struct{} // see Unwanted

	// Replaced hears of each database whose place a copy has taken, before the control plane does.
	Replaced func(id.DatabaseID)
	// RemoveFiles removes every file that there is of a database.
	RemoveFiles func(context.Context, id.DatabaseID) error
}

// New makes an executor for what the ledger admits, and registers it there.
func New(l *ledger.Ledger, o *overlay.Overlay, d *databases.Databases, p Pooler, log *zap.Logger) (*Executor, error) {
	guarding, err := l.Server().OpenMaintenance(1)
	if err != nil {
		return nil, err
	}
	x := &Executor{
		ledger: l, overlay: o, databases: d, server: l.Server(), db: l.DB(), guarding: guarding, pooler: p, log: log,
		unwanted: make(chan struct{}, 1), Replaced: func(id.DatabaseID) {},
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
	l.Whether(x.hasSwitched)
	l.Whether(x.hasRejoined)
	l.BeforeJobs(x.undoSwitch)
	return x, nil
}

// Stop closes the connections that the executor has of its own.
func (x *Executor) Stop() { _ = x.guarding.Close() }
