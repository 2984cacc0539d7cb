package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/previews"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// abreast is a store on which two rounds go step beside step: neither begins to delete a preview before both have seen what is
// due.
type abreast struct {
	ports.Store
	both bool // otherwise one goes alone
	mu   sync.Mutex
	seen chan struct{} // of whoever came first
}

func (s *abreast) View(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return s.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error { return fn(ctx, abreastTx{tx, s}) })
}

type abreastTx struct {
	ports.Tx
	store *abreast
}

func (t abreastTx) Previews() ports.Previews { return abreastPreviews{t.Tx.Previews(), t.store} }

type abreastPreviews struct {
	ports.Previews
	store *abreast
}

func (p abreastPreviews) Due(ctx context.Context, now, since time.Time) ([]ports.DuePreview, error) {
	due, err := p.Previews.Due(ctx, now, since)
	if p.store.both {
		p.store.meet()
	}
	return due, err
}

// meet returns when two have called it.
func (s *abreast) meet() {
	s.mu.Lock()
	other := s.seen
	if other != nil {
		s.seen = nil
		s.mu.Unlock()
		close(other)
		return
	}
	mine := make(chan struct{})
	s.seen = mine
	s.mu.Unlock()
	<-mine
}

// pipeline is a new account with so many previews.
func (w *world) pipeline(email string, count int) id.AccountID {
	w.t.Helper()
	first := w.planes[0]
	a, _, err := first.Operator.CreateAccount(w.ctx, operator.NewAccount{Email: email, Name: "Somebody", Plan: account.Business})
	ok(w.t, err)
	n := must(first.Operator.CreateNamespace(w.ctx, a.ID, "web"))(w.t)
	_, key, err := first.Operator.CreateCIKey(w.ctx, n.ID)
	ok(w.t, err)
	attempt := access.Attempt{Key: key, Class: ratelimit.Create, Client: customer, RequestID: "request"}
	ci := must(first.Access.Admit(w.ctx, attempt))(w.t).Caller
	for i := range count {
		must(first.Previews.Open(w.ctx, ci, previews.Request{Ref: fmt.Sprint("ref ", i)}))(w.t)
	}
	return a.ID
}

// counted are how many databases the accounts have, and how many previews the service is deleting.
func counted(t *testing.T, store ports.Store, accounts ...id.AccountID) (left, ending int) {
	t.Helper()
	ok(t, store.View(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		for _, a := range accounts {
			n, err := tx.Databases().Count(ctx, a)
			if left += n; err != nil {
				return err
			}
		}
		list, err := tx.Previews().Ending(ctx)
		ending = len(list)
		return err
	}))
	return left, ending
}

// oneEndsAtATime has the leases of two accounts end, beside two hosts whose rounds go step beside step and do not agree whose
// turn it is. They begin one deletion, and always one.
func oneEndsAtATime(t *testing.T, s setting) {
	store := &abreast{}
	s.plant = func(_ *rand.Rand, p parts) parts {
		store.Store = p.store
		p.store = store
		return p
	}
	w := newWorld(t, 1, s)
	const each = 4
	both := []id.AccountID{w.pipeline("ada@example.org", each), w.pipeline("bob@example.org", each)}
	w.clock.Advance(preview.DefaultHours * time.Hour)
	rounds := func(planes ...*plane) {
		var running sync.WaitGroup
		for _, p := range planes {
			running.Go(func() { ok(t, p.Rounds.Once(w.ctx)) })
		}
		running.Wait()
	}
	rounds(w.planes[0]) // the leases end
	for left := 2 * each; left > 0; left-- {
		w.clock.Advance(time.Second)
		if left == 2*each { // one host chooses alone, so that the other does not know whose turn that was
			rounds(w.planes[0])
			store.both = true
		} else {
			rounds(w.planes...)
		}
		if now, ending := counted(t, store.Store, both...); now != left || ending != 1 {
			t.Fatalf("%d previews are left, not %d, and %d are being deleted", now, left, ending)
		}
		for quiet := 0; quiet < 5; quiet++ {
			for must(w.planes[0].Work.RunNext(w.ctx))(t) {
				quiet = 0
			}
			w.clock.Advance(100 * time.Millisecond)
		}
	}
	if left, ending := counted(t, store.Store, both...); left != 0 || ending != 0 {
		t.Errorf("%d previews are left, %d are being deleted", left, ending)
	}
}

func TestOneLeaseEndsAtATime(t *testing.T)             { oneEndsAtATime(t, setting{}) }
func TestOneLeaseEndsAtATimeOnPostgreSQL(t *testing.T) { oneEndsAtATime(t, onPostgres(t)) }
