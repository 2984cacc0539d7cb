package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/ledgertest"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
)

// Two agents of different places that start at one moment both find nobody in charge. Whatever each then does to the other, one
// is in charge in the end, and the ledger takes nothing from the other one, which is told who has it, or that it was replaced.
func TestTwoAgentsStartAtOneMoment(t *testing.T) {
	on, db, password := ledgertest.NewOn(t)
	rounds := 20
	if !sample.Whole() {
		rounds = 2 // the one that loses waits for some seconds
	}
	for range rounds {
		ctx, cancel := context.WithTimeout(t.Context(), 2*check.Patience)
		var leaders [2]*ledger.Leader
		var starting sync.WaitGroup
		start := make(chan struct{})
		for i := range leaders {
			server := ledger.Server{
				Host: on.Host(), Port: on.Port(), Password: password, Instance: fmt.Sprintf("agent %d", i),
				Place: ledger.Place{Machine: "here", Folders: []string{strconv.Itoa(i)}},
			}
			starting.Go(func() {
				<-start
				leaders[i] = leads(ctx, t, server)
			})
		}
		close(start)
		starting.Wait()
		name := check.Must(pg.One[string](ctx, db, "SELECT instance FROM ledger.agent"))(t)
		holders := check.Must(pg.One[int](ctx, db, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"))(t)
		in := 0
		for i, l := range leaders {
			if l == nil {
				continue
			}
			watched, stop := context.WithTimeout(ctx, 1500*time.Millisecond) // it looks every second
			err := l.Watch(watched, func(error) {})
			stop()
			if replaced := errors.Is(err, ledger.ErrSuperseded); replaced == (name == fmt.Sprintf("agent %d", i)) {
				t.Errorf("%s is in charge, and agent %d is replaced: %t", name, i, replaced)
			} else if !replaced {
				in++
			}
			l.Release()
		}
		if in != 1 || holders != 1 {
			t.Errorf("%d are in charge, and %d have the lock", in, holders)
		}
		check.Eventually(t, "the lock is not released", func() bool {
			n, err := pg.One[int](ctx, db, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted")
			return err == nil && n == 0
		})
		cancel()
	}
}

// leads takes charge as an agent does, which tries again until another one has it; nil then.
func leads(ctx context.Context, t *testing.T, s ledger.Server) *ledger.Leader {
	t.Helper()
	for {
		leader, err := s.Lead(ctx)
		var held *ledger.HeldError
		switch {
		case err == nil:
			return leader
		case errors.As(err, &held):
			return nil
		case ctx.Err() != nil:
			t.Error("nobody gets in charge: ", err)
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}
