// Package settings sets what the service wants of databases, timeouts and read-only ones, and ends the sessions of before.
package settings

import (
	"context"
	"database/sql"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/databases"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pooler"
)

// Pooler is what this package needs of PgBouncer; *pooler.Pooler implements it.
type Pooler interface {
	Pools(ctx context.Context) ([]pooler.Pool, error)
	Reconnect(ctx context.Context, database string) error
	Keeping(ctx context.Context, databases []string) (map[string][]string, error)
	EndIdle(ctx context.Context, ids []string, quiet time.Duration) (left []string, err error)
}

// Setter carries out the command that sets a database's settings.
type Setter struct {
	ledger    *ledger.Ledger
	databases *databases.Databases
	db        *sql.DB // maintenance database
	pooler    Pooler
	log       *zap.Logger

	unsettled chan struct{} // wakes SettleSessions
}

// New registers the command with the ledger.
func New(l *ledger.Ledger, d *databases.Databases, p Pooler, log *zap.Logger) *Setter {
	x := &Setter{ledger: l, databases: d, db: l.DB(), pooler: p, log: log, unsettled: make(chan struct{}, 1)}
	ledger.On(l, x.configure, ledger.OfNoOperation)
	return x
}
