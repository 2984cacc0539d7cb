package databases

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// setAllowlist makes PgBouncer admit only a database's networks, and ends clients from elsewhere.
func (x *Databases) setAllowlist(ctx context.Context, e protocol.Command, c command.SetAllowlist) (none command.None, err error) {
	d, err := x.ledger.InService(ctx, string(c.DatabaseID))
	if err != nil {
		return none, err
	}
	if err := pg.Atomically(ctx, x.db, networksStatement(d, c.Networks)); err != nil {
		return none, err
	}
	crash.Point(crash.AllowlistStored)
	if err := x.pooler.Sync(ctx, x.ledger.PoolerState); err != nil {
		return none, err
	}
	crash.Point(crash.AllowlistApplied)
	if err := x.evictStrangers(ctx, d); err != nil {
		return none, err
	}
	crash.Point(crash.AllowlistEvicted)
	return ledger.Conclude(ctx, x.ledger, e, none, crash.AllowlistReply)
}

// evictStrangers ends the clients of a database that come from where nobody is admitted any more.
func (x *Databases) evictStrangers(ctx context.Context, d ledger.Database) error {
	allow, welcome, err := x.ledger.Networks(ctx, d)
	if err != nil {
		return err
	}
	return x.pooler.Evict(ctx, pooler.NotAllowed(d.Name, pooler.Admitted(allow, welcome)))
}

// welcome has PgBouncer admit clients whom other servers send on, and ends those of servers that it admits no more. It counts for
// an isolated database once that is in service again.
func (x *Databases) welcome(ctx context.Context, e protocol.Command, c command.Welcome) (none command.None, err error) {
	d, err := x.ledger.Known(ctx, string(c.DatabaseID))
	if err == nil && !d.Named() {
		err = ledger.NoDatabase(d.ID)
	}
	if err != nil {
		return none, err
	}
	if err := pg.Atomically(ctx, x.db, fmt.Sprintf("UPDATE ledger.database SET welcome = %s WHERE id = %s",
		pg.Quote(listOf(c.From)), pg.Quote(d.ID))); err != nil {
		return none, err
	}
	crash.Point(crash.WelcomeStored)
	if err := x.pooler.Sync(ctx, x.ledger.PoolerState); err != nil {
		return none, err
	}
	if err := x.evictStrangers(ctx, d); err != nil {
		return none, err
	}
	return ledger.Conclude(ctx, x.ledger, e, none, crash.WelcomeReply)
}

func networksStatement(d ledger.Database, networks []netip.Prefix) string {
	return fmt.Sprintf("UPDATE ledger.database SET networks = %s WHERE id = %s", pg.Quote(listOf(networks)), pg.Quote(d.ID))
}

// listOf writes networks or addresses as an array of PostgreSQL's.
func listOf[T fmt.Stringer](list []T) string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = n.String()
	}
	return "{" + strings.Join(texts, ",") + "}"
}
