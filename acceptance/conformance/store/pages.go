package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pgherd/pgherd/ports"
)

// pagesOf reads a list in pages of every length and wants the entries in the order of (time, key, ID), upwards or downwards, each
// once. A page goes on from the position of the last entry, as a cursor that a client hands back.
func pagesOf[T any](
	w *world, want []T, position func(T) ports.Position, direction int,
	list func(context.Context, ports.Tx, ports.Page) ([]T, error),
) {
	w.Helper()
	slices.SortFunc(want, func(a, b T) int {
		p, q := position(a), position(b)
		return direction * cmp.Or(p.At.Compare(q.At), cmp.Compare(p.Key, q.Key), cmp.Compare(p.ID, q.ID))
	})
	for limit := range len(want) + 2 {
		var got []T
		p := ports.Page{Limit: limit}
		for range len(want) + 2 {
			page := onePage(w, p, list)
			if limit > 0 && len(page) > limit {
				w.Fatalf("a page of %d has %d entries", limit, len(page))
			}
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			after := must(ports.ParseCursor(position(page[len(page)-1]).Cursor()))(w)
			p.After = after
		}
		w.equal("the list in pages", got, want)
	}
}

func onePage[T any](w *world, p ports.Page, list func(context.Context, ports.Tx, ports.Page) ([]T, error)) []T {
	w.Helper()
	return found(w.view, func(ctx context.Context, tx ports.Tx) ([]T, error) { return list(ctx, tx, p) })
}

// paged is a list of what belongs to a.
func paged[R, A, T any](
	of func(ports.Tx) R, call func(R, context.Context, A, ports.Page) ([]T, error), a A,
) func(context.Context, ports.Tx, ports.Page) ([]T, error) {
	return func(ctx context.Context, tx ports.Tx, p ports.Page) ([]T, error) { return call(of(tx), ctx, a, p) }
}

func paged0[R, T any](
	of func(ports.Tx) R, call func(R, context.Context, ports.Page) ([]T, error),
) func(context.Context, ports.Tx, ports.Page) ([]T, error) {
	return func(ctx context.Context, tx ports.Tx, p ports.Page) ([]T, error) { return call(of(tx), ctx, p) }
}

// at is a position.
func at[T ~string](t time.Time, id T) ports.Position { return ports.Position{At: t, ID: string(id)} }
