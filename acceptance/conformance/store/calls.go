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

// inOrder is several in one.
func inOrder(steps ...transaction) transaction {
	return func(ctx context.Context, tx ports.Tx) error {
		for _, step := range steps {
			if err := step(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	}
}

// read0, read and read2 are what a call finds in a view.
func read0[R, T any](w *world, of func(ports.Tx) R, call func(R, context.Context) (T, error)) T {
	w.Helper()
	return found(w.view, func(ctx context.Context, tx ports.Tx) (T, error) { return call(of(tx), ctx) })
}

func read[R, A, T any](w *world, of func(ports.Tx) R, call func(R, context.Context, A) (T, error), a A) T {
	w.Helper()
	return found(w.view, func(ctx context.Context, tx ports.Tx) (T, error) { return call(of(tx), ctx, a) })
}

func read2[R, A, B, T any](w *world, of func(ports.Tx) R, call func(R, context.Context, A, B) (T, error), a A, b B) T {
	w.Helper()
	return found(w.view, func(ctx context.Context, tx ports.Tx) (T, error) { return call(of(tx), ctx, a, b) })
}

// readLocked is what a call finds that locks it.
func readLocked[R, A, T any](w *world, of func(ports.Tx) R, call func(R, context.Context, A) (T, error), a A) T {
	w.Helper()
	return found(w.update, func(ctx context.Context, tx ports.Tx) (T, error) { return call(of(tx), ctx, a) })
}

func found[T any](in func(transaction), call func(context.Context, ports.Tx) (T, error)) (got T) {
	in(func(ctx context.Context, tx ports.Tx) (err error) {
		got, err = call(ctx, tx)
		return err
	})
	return got
}

// take is what a call finds that changes it.
func take[T any](ctx context.Context, s ports.Store, call func(context.Context, ports.Tx) (T, error)) (got T, err error) {
	err = s.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		got, err = call(ctx, tx)
		return err
	})
	return got, err
}

// changed is what a few changes make of a value.
func changed[T any](v T, change []func(*T)) T {
	for _, c := range change {
		c(&v)
	}
	return v
}
