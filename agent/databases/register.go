// Package databases creates, opens and closes databases, keeps their allowlists, and tells what there is of them.
package databases

import (
	"context"
	"database/sql"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
)

// Pooler is what this package needs of PgBouncer; *pooler.Pooler implements it.
type Pooler interface {
	Sync(ctx context.Context, read pooler.Read) error
	SyncSoon(read pooler.Read)
	Evict(ctx context.Context, who pooler.Who) error
	Prove(ctx context.Context, entry, login, password string) error
}

// Databases carries out the commands about databases as a whole.
type Databases struct {
	ledger *ledger.Ledger
	server ledger.Server
	db     *sql.DB // maintenance database
	pooler Pooler
}

// New registers the commands with the ledger, and what undoes a creation.
func New(l *ledger.Ledger, p Pooler) *Databases {
	x := &Databases{ledger: l, server: l.Server(), db: l.DB(), pooler: p}
	ledger.On(l, x.ensureDatabase, ledger.AdmittedLate)
	ledger.On(l, x.setAccess)
	ledger.On(l, x.setAllowlist, ledger.OfNoOperation)
	ledger.On(l, x.welcome, ledger.OfNoOperation)
	ledger.Completing[command.EnsureDatabase](l, func(command.None) bool { return true })
	l.AfterJobs(x.undoCreate)
	return x
}
