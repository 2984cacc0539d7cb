package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
)

func (x *Executor) setAllowlist(c protocol.Command) (action, error) {
	var w protocol.AllowlistPayload
	if err := readPayload(c, &w); err != nil {
		return nil, err
	}
	if _, err := databaseOf(c, w.DatabaseID); err != nil {
		return nil, err
	}
	networks, err := parseNetworks(w.Networks)
	if err != nil {
		return nil, refuse(protocol.ReasonInvalid, "networks: %v", err)
	}
	return func(ctx context.Context) (json.RawMessage, error) { return x.allow(ctx, c, w.DatabaseID, networks) }, nil
}

// allow makes PgBouncer admit only a database's networks, and ends clients from elsewhere.
func (x *Executor) allow(
	ctx context.Context, c protocol.Command, databaseID string, networks []netip.Prefix,
) (json.RawMessage, error) {
	d, err := x.madeDatabase(ctx, databaseID)
	if err != nil {
		return nil, err
	}
	if err := atomically(ctx, x.db, networksStatement(d, networks)); err != nil {
		return nil, err
	}
	crash.Point(crash.AllowlistStored)
	if err := x.syncPooler(ctx); err != nil {
		return nil, err
	}
	crash.Point(crash.AllowlistApplied)
	if err := x.pooler.Evict(ctx, pooler.NotAllowed(d.Name, networks)); err != nil {
		return nil, err
	}
	crash.Point(crash.AllowlistEvicted)
	if err := atomically(ctx, x.db, outcome(c, noResult)); err != nil {
		return nil, err
	}
	crash.Point(crash.AllowlistReply)
	return noResult, nil
}

func networksStatement(d databaseRow, networks []netip.Prefix) string {
	texts := make([]string, len(networks))
	for i, n := range networks {
		texts[i] = n.String()
	}
	return fmt.Sprintf("UPDATE ledger.database SET networks = %s WHERE id = %s",
		quote("{"+strings.Join(texts, ",")+"}"), quote(d.ID))
}
