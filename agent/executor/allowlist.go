package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
)

// setAllowlist makes PgBouncer admit a database's networks only, and ends clients from elsewhere.
func (x *Executor) setAllowlist(ctx context.Context, c protocol.Command) (json.RawMessage, error) {
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
	d, err := x.madeDatabase(ctx, w.DatabaseID)
	if err != nil {
		return nil, err
	}
	if err := atomically(ctx, x.db, networksStatement(d, w.Networks)); err != nil {
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

func networksStatement(d databaseRow, networks []string) string {
	return fmt.Sprintf("UPDATE ledger.database SET networks = %s WHERE id = %s",
		quote("{"+strings.Join(networks, ",")+"}"), quote(d.ID))
}
