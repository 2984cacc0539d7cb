package pooler

import (
	"context"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// The agent that waits at the maintenance database's entry, where it looks whether customers come in, is no customer that waits.
func TestTheAgentsOwnWaitIsNoCustomers(t *testing.T) {
	s := realStack(t)
	ctx, end := context.WithCancel(t.Context())
	// What it asks waits for the lock, which ends with the context.
	held := check.Must(s.super.BeginTx(ctx, nil))(t)
	check.Must(held.Exec("LOCK TABLE pooler.gate"))(t)
	var entered sync.WaitGroup
	defer entered.Wait()
	defer end()
	for range 6 { // PgBouncer has four connections for that
		entered.Go(func() { _ = s.pooler.EnterOutside(ctx) })
	}
	awaitWaiting(t, s.pooler, 1)
	if clients, longest, err := NewReport(s.pooler.Console).Waits(t.Context()); clients != 0 || longest != 0 || err != nil {
		t.Errorf("%d clients wait, the first for %s, %v", clients, longest, err)
	}
}
