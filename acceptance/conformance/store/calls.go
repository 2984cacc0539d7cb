package store

import (
	"context"

	"github.com/pgherd/pgherd/ports"
)

// transaction is what happens in one.
type transaction = func(ctx context.Context, tx ports.Tx) error

// The functions below make transactions of one call of one repository: a method expression, such as ports.Keys.Get, and its
// arguments.

func writing[R, A any](of func(ports.Tx) R, call func(R, context.Context, A) error, a A) transaction {
	return func(ctx context.Context, tx ports.Tx) error { return call(of(tx), ctx, a) }
}

func writing2[R, A, B any](of func(ports.Tx) R, call func(R, context.Context, A, B) error, a A, b B) transaction {
	return func(ctx context.Context, tx ports.Tx) error { return call(of(tx), ctx, a, b) }
}

// reading drops what the call finds.
func reading[R, A, T any](of func(ports.Tx) R, call func(R, context.Context, A) (T, error), a A) transaction {
	return func(ctx context.Context, tx ports.Tx) error {
		_, err := call(of(tx), ctx, a)
		return err
	}
}

func reading2[R, A, B, T any](of func(ports.Tx) R, call func(R, context.Context, A, B) (T, error), a A, b B) transaction {
	return func(ctx context.Context, tx ports.Tx) error {
		_, err := call(of(tx), ctx, a, b)
		return err
	}
}

// read is what a call finds in a view.
func read[R, A, T any](w *world, of func(ports.Tx) R, call func(R, context.Context, A) (T, error), a A) T {
	w.Helper()
	return found(w.view, of, call, a)
}

func read2[R, A, B, T any](
	w *world, of func(ports.Tx) R, call func(R, context.Context, A, B) (T, error), a A, b B,
) (got T) {
	w.Helper()
	w.view(func(ctx context.Context, tx ports.Tx) (err error) {
		got, err = call(of(tx), ctx, a, b)
		return err
	})
	return got
}

// readLocked is what a call finds that locks it.
func readLocked[R, A, T any](w *world, of func(ports.Tx) R, call func(R, context.Context, A) (T, error), a A) T {
	w.Helper()
	return found(w.update, of, call, a)
}

func found[R, A, T any](
	in func(transaction), of func(ports.Tx) R, call func(R, context.Context, A) (T, error), a A,
) (got T) {
	in(func(ctx context.Context, tx ports.Tx) (err error) {
		got, err = call(of(tx), ctx, a)
		return err
	})
	return got
}
