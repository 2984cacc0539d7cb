package controlplane_test

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/ports"
)

// interrupted is a store where something happens, once, as a View first comes to the operations.
type interrupted struct {
	ports.Store
	by *func()
}

type interruptedTx struct {
	ports.Tx
	by *func()
}

func (s interrupted) View(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return s.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error { return fn(ctx, interruptedTx{tx, s.by}) })
}

func (tx interruptedTx) Operations() ports.Operations {
	if do := *tx.by; do != nil {
		*tx.by = nil
		do()
	}
	return tx.Tx.Operations()
}

// A request that comes while the same one is being admitted gets its operation, and is not refused over it.
func TestTheSameRequestForAnExtensionTwiceAtOnce(t *testing.T) {
	w := newExtensionWorld(t)
	first, second := w.process(quick()), func() {}
	w.ports.Store = interrupted{w.store, &second}
	r, q := w.forExtensions(), install("citext", "once")
	cp := w.process(quick())
	second = func() { must(first.Extensions.Start(w.ctx, r, q))(t) }
	o := must(cp.Extensions.Start(w.ctx, r, q))(t)
	equal(t, "operation", o.ID, w.newest().ID)
}
