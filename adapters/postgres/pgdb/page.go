package pgdb

import (
	"context"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// A page is found by comparing (time, id) or (key, id) with a position. A first page begins before or after all entries, so that
// one statement serves every page.
const (
	Beginning = "-infinity"
	End       = "infinity"
	FirstUUID = "00000000-0000-0000-0000-000000000000"
	LastUUID  = "ffffffff-ffff-ffff-ffff-ffffffffffff"
)

// PageOf reads a page of a list. The arguments that find it come last.
func PageOf[T any](
	ctx context.Context, s Session, st *Statement, position func(ports.Page) ([]any, error), p ports.Page, args ...any,
) ([]T, error) {
	found, err := position(p)
	if err != nil {
		return nil, err
	}
	return All[T](ctx, s, st, append(args, found...)...)
}

// Forward are the time, ID and limit of a page of a list that is sorted upwards by a uuid.
func Forward(p ports.Page) ([]any, error) { return byTime(p, Beginning, FirstUUID) }

// Backward are those of a list that is sorted downwards.
func Backward(p ports.Page) ([]any, error) { return byTime(p, End, LastUUID) }

func byTime(p ports.Page, at, from string) ([]any, error) {
	if p.After != nil && p.After.Key != "" {
		return nil, ports.ErrCursor()
	}
	return Positions(p, at, from)
}

// Positions are the key or time, ID and limit of a page of a list that is sorted by a uuid after that. A first page begins at at
// and from.
func Positions(p ports.Page, at, from string) ([]any, error) {
	if p.After == nil {
		return []any{at, from, Limit(p)}, nil
	}
	if _, err := id.Parse[id.DatabaseID](p.After.ID); err != nil {
		return nil, ports.ErrCursor()
	}
	if p.After.Key != "" {
		return []any{p.After.Key, p.After.ID, Limit(p)}, nil
	}
	return []any{p.After.At, p.After.ID, Limit(p)}, nil
}

// Limit is the argument of LIMIT: NULL is none.
func Limit(p ports.Page) any {
	if p.Limit <= 0 {
		return nil
	}
	return p.Limit
}

// Listed is an array parameter: nil is an empty one, as NULL compares with nothing.
func Listed[T ~string](list []T) any {
	if list == nil {
		list = []T{}
	}
	return pq.Array(list)
}
