package crash_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// TestKilledHostsOfTheirOwn shares a stack among tests that disturb nothing in it: each starts the hosts that it kills.
func TestKilledHostsOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	t.Run("together", func(t *testing.T) {
		for name, play := range map[string]func(*testing.T, *world){"a key's limit": limitsAKey, "mailers": killsMailers} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				play(t, w)
			})
		}
	})
	t.Run("the key ring", func(t *testing.T) { changesTheRing(t, w) })
}

// limitsAKey floods three hosts with one key: they let in its limit and not one request more, although each decides by leases and
// one is killed over it. What is missing at the end is what that one can have held: an eighth of the limit.
func limitsAKey(t *testing.T, w *world) {
	const limit, refill = 400, time.Hour / 400
	u := w.newUser(t, 1)
	var hosts []*stack.Host
	for range 3 {
		host := must(w.StartAPI(soon(t), "", "--rate-limits", "read=400/1h"))(t)
		hosts = append(hosts, host)
	}
	began := time.Now()
	var let atomic.Int64
	flood := func(each int, hosts ...*stack.Host) {
		var crowd sync.WaitGroup
		for i := range 4 * len(hosts) {
			crowd.Go(func() {
				for range each {
					_, err := u.at(hosts[i%len(hosts)]).Databases.List().Page(soon(t), apiclient.Page{})
					switch {
					case err == nil:
						let.Add(1)
					case codeOf(err) != fault.RateLimited:
						t.Error(err)
					}
				}
			})
		}
		crowd.Wait()
	}
	flood(20, hosts...)
	if n := let.Load(); n != 12*20 {
		t.Errorf("%d of the first %d were let in, far below the limit", n, 12*20)
	}
	noError(t, hosts[2].Kill())
	flood(60, hosts[:2]...)
	time.Sleep(ratelimit.Hold + 2*time.Second) // what the others held has gone back
	flood(20, hosts[:2]...)
	n, most := int(let.Load()), limit+1+int(time.Since(began)/refill)
	if n > most || n < limit-limit/ratelimit.Share {
		t.Errorf("%d were let in; the limit is %d", n, most)
	}
}
