package main

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// measurePreview makes previews through the API, and databases by hand.
func measurePreview(ctx context.Context, b *bench) ([]row, error) {
	h, err := newPlainSQL(ctx, b)
	if err != nil {
		return nil, err
	}
	defer h.close()
	key, err := b.stack.NewCIKey(ctx, b.account, "bench")
	if err != nil {
		return nil, err
	}
	ci, err := newClient(b.api.URL, key)
	if err != nil {
		return nil, err
	}
	preview := func(ctx context.Context, _ *bench, ref string) (func(context.Context) error, error) {
		made, err := ci.Previews.Create(ctx, wire.CreatePreview{Ref: ref})
		if err == nil && made.Connection.Password == "" {
			err = errors.New("the preview was not made by this request")
		}
		return func(ctx context.Context) error {
			return h.dropMade(ctx, made.Data.DatabaseID, made.Connection.Database)
		}, err
	}
	t, err := inTurn(b.runs*pairsPerRun, b.making(ctx, preview, "preview"), b.making(ctx, h.withSQL, "hand"))
	if err != nil {
		return nil, err
	}
	return []row{t.row("POST /previews against the same SQL by hand", 1.5)}, nil
}
