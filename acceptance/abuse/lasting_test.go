package abuse_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// An abuse of something that all customers of a server share is tried for a while. Meanwhile the bystander works at a steady
// pace, and soon after the abuse has ended, all is as before.

// lasts is how long such an abuse is tried, and lastsSampled how long where nothing is measured. recovers is how long after its
// end all is as before.
const (
	lasts        = 60 * time.Second
	lastsSampled = 3 * time.Second
	recovers     = 10 * time.Second
)

// lastingMeasures are those of such an abuse, each at a pace of its own. What is slow is begun again when it has ended.
var (
	lastingMeasures = []string{queries, logins, creations, backups}
	paces           = map[string]time.Duration{
		queries: 10 * time.Millisecond, logins: 100 * time.Millisecond, creations: 4 * time.Second, backups: 3 * time.Second,
	}
)

// shared is something that all customers of a server share, of which an abuse takes much.
type shared struct {
	what string
	look func(context.Context, *world) (used float64, err error)
	// slack is how much more of it than before the abuse may be in use after its end. Other work goes on meanwhile.
	slack float64
}

// counted is looked at with a query of one number, by a superuser in the database postgres.
func counted(what string, slack float64, query string) shared {
	return shared{what: what, slack: slack, look: func(ctx context.Context, w *world) (used float64, err error) {
		err = w.asSuperuser.QueryRowContext(ctx, query).Scan(&used)
		return used, err
	}}
}

// last plays an abuse of something shared for so long. It returns how long the bystander's requests took meanwhile and, where
// figures are measured, soon after its end.
func (a abuse) last(t *testing.T, b *bystander, d time.Duration) (during, after map[string][]time.Duration) {
	t.Helper()
	before := usedOf(t, b.world, a.shared)
	t.Run("tried", func(t *testing.T) { // the abuse ends with this test
		stillOn := a.begin(t, newMallory(t, b.world, a))
		during = b.works(t, d)
		if stillOn != nil {
			stillOn(t)
		}
	})
	ended := time.Now()
	b.wantAsBefore(t, a.shared, before)
	if !*figures {
		return during, nil
	}
	time.Sleep(time.Until(ended.Add(recovers)))
	return during, b.works(t, lasts/2)
}

// works has the bystander do everything of lastingMeasures at its pace, all at the same time, and returns how long each request
// took. A request that fails fails the test.
func (b *bystander) works(t *testing.T, d time.Duration) map[string][]time.Duration {
	t.Helper()
	var mu sync.Mutex
	var working sync.WaitGroup
	took, until := map[string][]time.Duration{}, time.Now().Add(d)
	for _, m := range lastingMeasures {
		working.Go(func() {
			for n := 0; n == 0 || time.Now().Before(until); n++ {
				began := time.Now()
				if err := b.within(t.Context(), func(ctx context.Context) error { return b.does(m)(ctx, n) }); err != nil {
					t.Errorf("the bystander's %s %d after %s: %v", m, n+1, short(time.Since(began)), err)
					return
				}
				mu.Lock()
				took[m] = append(took[m], time.Since(began))
				mu.Unlock()
				time.Sleep(time.Until(began.Add(paces[m])))
			}
		})
	}
	working.Wait()
	for _, m := range lastingMeasures {
		t.Logf("%d of %s: p99 %s", len(took[m]), m, short(p99(m, took[m])))
	}
	return took
}

func usedOf(t *testing.T, w *world, all []shared) (used []float64) {
	t.Helper()
	for _, s := range all {
		used = append(used, must(s.look(soon(t), w))(t))
	}
	return used
}

// wantAsBefore waits until no more is used than before.
func (b *bystander) wantAsBefore(t *testing.T, all []shared, before []float64) {
	t.Helper()
	for deadline := time.Now().Add(recovers); ; time.Sleep(100 * time.Millisecond) {
		var over []string
		for i, s := range all {
			if now, err := s.look(soon(t), b.world); err != nil || now > before[i]+s.slack {
				over = append(over, fmt.Sprintf("%s: %g before, and %g now (%v)", s.what, before[i], now, err))
			}
		}
		if len(over) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s after its end it is not as before: %s", recovers, strings.Join(over, "; "))
			return
		}
	}
}
