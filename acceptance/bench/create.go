package main

import (
	"context"
	"fmt"
)

// pairsPerRun is how many databases each way are made for one of the runs asked for.
const pairsPerRun = 5

// measureCreate makes databases through the API and by hand.
func measureCreate(ctx context.Context, b *bench) ([]row, error) {
	h, err := newPlainSQL(ctx, b)
	if err != nil {
		return nil, err
	}
	defer h.close()
	t, err := inTurn(b.runs*pairsPerRun, b.making(ctx, h.throughAPI, "api"), b.making(ctx, h.withSQL, "hand"))
	if err != nil {
		return nil, err
	}
	return []row{t.row("POST /databases against the same SQL by hand", 1.5)}, nil
}

// maker makes one database and returns what drops it again.
type maker func(ctx context.Context, b *bench, name string) (drop func(context.Context) error, err error)

func (b *bench) making(ctx context.Context, one maker, prefix string) way {
	var drop func(context.Context) error
	return way{
		measured: func(n int) (err error) {
			drop, err = one(ctx, b, fmt.Sprintf("%s-%03d", prefix, n))
			return err
		},
		after: func(int) error { return drop(ctx) },
	}
}
