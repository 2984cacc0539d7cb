package base

import (
	"context"

	"github.com/pgherd/pgherd/ports"
)

// List reads a page of a list, and returns the position of its last entry where there are more. read is asked for one entry more
// than the page has, to find that out.
func List[T any](
	ctx context.Context, s ports.Store, p ports.Page, position func(T) ports.Position,
	read func(ctx context.Context, tx ports.Tx, p ports.Page) ([]T, error),
) (list []T, next *ports.Position, err error) {
	list, err = ports.Read(ctx, s, func(ctx context.Context, tx ports.Tx) ([]T, error) { return read(ctx, tx, p.Beyond()) })
	list, next = ports.Cut(list, p, position)
	return list, next, err
}
