package postgres

import (
	"context"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// A page is found by comparing (time, id) with a position. A first page begins before or after all entries, so that one
// statement, which always walks an index, serves every page.
const (
	beginning = "-infinity"
	end       = "infinity"
	firstUUID = "00000000-0000-0000-0000-000000000000"
	lastUUID  = "ffffffff-ffff-ffff-ffff-ffffffffffff"
)

// pageOf reads a page of a list. The arguments that find it come last.
func pageOf[T any](
	ctx context.Context, s session, st *statement, position func(ports.Page) ([]any, error), p ports.Page, args ...any,
) ([]T, error) {
	found, err := position(p)
	if err != nil {
		return nil, err
	}
	return all[T](ctx, s, st, append(args, found...)...)
}

// forward are the time, ID and limit of a page of a list that is sorted upwards by a uuid.
func forward(p ports.Page) ([]any, error) { return positions(p, beginning, firstUUID) }

// backward are those of a list that is sorted downwards.
func backward(p ports.Page) ([]any, error) { return positions(p, end, lastUUID) }

func positions(p ports.Page, at, from string) ([]any, error) {
	if p.After == nil {
		return []any{at, from, limit(p)}, nil
	}
	if _, err := id.Parse[id.DatabaseID](p.After.ID); err != nil {
		return nil, fault.Invalid("cursor", "is not a cursor that this list returned")
	}
	return []any{p.After.At, p.After.ID, limit(p)}, nil
}

// limit is the argument of LIMIT: NULL is none.
func limit(p ports.Page) any {
	if p.Limit <= 0 {
		return nil
	}
	return p.Limit
}
