package controlplane

import (
	"context"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// pushAllowlists sends the allowlists that a crash or an outage kept from their servers.
func (k *Keeper) pushAllowlists(ctx context.Context, start func(work func())) error {
	due, err := k.due(ctx, ports.DueAllowlist, keepMost)
	for server, list := range byServer(due, func(r database.Record) id.ServerID { return r.ServerID }) {
		k.pushing.work(server, start, func() { k.pushEach(ctx, list) })
	}
	return err
}

// pushEach sends the allowlists of one server, until it does not answer.
func (k *Keeper) pushEach(ctx context.Context, list []database.Record) {
	for _, r := range list {
		err := k.pushInTime(ctx, r.ID)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !isSettled(err) {
			k.journal(ctx, "allowlist.pending", r.ID, err)
		}
		if noAnswer(err) {
			return
		}
	}
}

func (k *Keeper) pushInTime(ctx context.Context, db id.DatabaseID) error {
	ctx, cancel := context.WithTimeout(ctx, keepTime)
	defer cancel()
	return k.pushAllowlist(ctx, db)
}
