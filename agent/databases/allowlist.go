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
	if err := x.pooler.Evict(ctx, pooler.NotAllowed(d.Name, c.Networks)); err != nil {
		return none, err
	}
	crash.Point(crash.AllowlistEvicted)
	return ledger.Conclude(ctx, x.ledger, e, none, crash.AllowlistReply)
}

func networksStatement(d ledger.Database, networks []netip.Prefix) string {
	texts := make([]string, len(networks))
	for i, n := range networks {
		texts[i] = n.String()
	}
	return fmt.Sprintf("UPDATE ledger.database SET networks = %s WHERE id = %s",
		pg.Quote("{"+strings.Join(texts, ",")+"}"), pg.Quote(d.ID))
}
