// Package logins prepares, admits, changes and removes logins, proves what it has changed, and ends what is left of an old
// password.
package logins

import (
	"context"
	"database/sql"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/overlay"
	"github.com/pgherd/pgherd/agent/pooler"
)

// Pooler is what this package needs of PgBouncer; *pooler.Pooler implements it.
type Pooler interface {
	Sync(ctx context.Context, read pooler.Read) error
	SyncSoon(read pooler.Read)
	Expel(ctx context.Context, who pooler.Who) (closed int, err error)
	Prove(ctx context.Context, entry, login, password string) error
	ProveRefused(ctx context.Context, entry, login, password string) error
	Full(ctx context.Context, entry string) (bool, error)
	EnterOutside(ctx context.Context) error
}

// Logins carries out the commands about logins.
type Logins struct {
	ledger  *ledger.Ledger
	overlay *overlay.Overlay
	server  ledger.Server
	db      *sql.DB // maintenance database
	pooler  Pooler
	log     *zap.Logger

	changed chan struct{} // wakes SweepChanged
}

// New registers the commands with the ledger.
func New(l *ledger.Ledger, o *overlay.Overlay, p Pooler, log *zap.Logger) *Logins {
	x := &Logins{ledger: l, overlay: o, server: l.Server(), db: l.DB(), pooler: p, log: log, changed: make(chan struct{}, 1)}
	ledger.On(l, x.prepareRole)
	ledger.On(l, x.admitRole)
	ledger.On(l, x.changeLogin, ledger.AdmittedLate)
	ledger.On(l, x.removeRole)
	return x
}
