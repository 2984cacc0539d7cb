package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

const (
	// pairsPerRun is how many databases each way are made for one of the runs asked for.
	pairsPerRun = 5
	// mostToCreate is times what a login and CREATE DATABASE take: pgherd makes six roles, hardens the database, and logs in through
	// the pooler.
	mostToCreate = 2.5
)

// measureCreate makes databases through the API and by hand.
func measureCreate(ctx context.Context, b *bench) ([]row, error) {
	return b.creating(ctx, "POST /databases against CREATE ROLE, CREATE DATABASE and a log-in", func(n int) error {
		_, err := b.client.create(ctx, fmt.Sprintf("api-%03d", n))
		return err
	})
}

// measurePreview makes previews through the API, and databases by hand.
func measurePreview(ctx context.Context, b *bench) ([]row, error) {
	key, err := b.stack.NewCIKey(ctx, b.account, "bench")
	if err != nil {
		return nil, err
	}
	ci, err := newClient(b.api.URL, key)
	if err != nil {
		return nil, err
	}
	return b.creating(ctx, "POST /previews against the same", func(n int) error {
		made, err := ci.Previews.Create(ctx, wire.CreatePreview{Ref: fmt.Sprintf("preview-%03d", n)})
		if err == nil && made.Connection.Password == "" {
			err = errors.New("the preview was not made by this request")
		}
		return err
	})
}

func (b *bench) creating(ctx context.Context, what string, ours func(n int) error) ([]row, error) {
	h, err := b.byHand(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	name := func(n int) string { return fmt.Sprintf("by-hand-%03d", n) }
	t, err := inTurn(b.runs*pairsPerRun, way{measured: ours}, way{
		measured: func(n int) error { return h.create(ctx, name(n)) },
		after:    func(n int) error { return h.drop(ctx, name(n)) },
	})
	if err != nil {
		return nil, err
	}
	return []row{t.row(what, mostToCreate)}, nil
}
