package store

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// manyAMinute has leases of up to 30 requests.
var manyAMinute = ratelimit.Limit{Count: 240, Period: time.Minute}

func leaseOf(k account.Key, a ratelimit.Ask, now time.Time) ports.LeaseRequest {
	r := request(k, ratelimit.Read, now)
	r.Limit, r.Ask = manyAMinute, a
	return r
}

// leasesAreTheCores leases at random for four hosts, whose clocks are apart, and compares each grant with ratelimit.Bucket's.
func leasesAreTheCores(w *world) {
	k, now, bucket := w.addKey(account.FullAccount, w.account), epoch, ratelimit.Bucket{}
	var held [4]ratelimit.Stretch
	dice := rand.New(rand.NewPCG(1, 2))
	for step := range 400 {
		host := dice.IntN(len(held))
		now = now.Add(time.Duration(dice.IntN(3)*dice.IntN(700)) * time.Millisecond)
		at := now.Add(time.Duration(host*250) * time.Millisecond)
		if dice.IntN(3) == 0 {
			bucket.Return(manyAMinute, held[host], at)
			rest := ports.Rest{Key: k.ID, Class: ratelimit.Read, Limit: manyAMinute, Stretch: held[host]}
			noError(w, w.Admissions.Return(w.Context(), []ports.Rest{rest}, at))
			held[host] = ratelimit.Stretch{}
			continue
		}
		a := ratelimit.Ask{Requests: 1 + dice.IntN(40), Rest: held[host]}
		if dice.IntN(3) == 0 {
			a.Rest = ratelimit.Stretch{} // the host has crashed
		}
		want := bucket.Lease(manyAMinute, a, at)
		_, got, err := w.Admissions.Lease(w.Context(), leaseOf(k, a, at))
		if err != nil {
			w.Fatal(err)
		}
		w.equal("the grant at step "+numbered(step), got, want)
		if held[host] = got.Stretch; !held[host].Empty() {
			requests := int(got.To.Sub(got.From) / manyAMinute.Step())
			held[host].From = got.From.Add(time.Duration(dice.IntN(requests+1)) * manyAMinute.Step())
		}
	}
}

// parallelLeasesAreExact has hosts lease more than they use, and give it back, all in the same moment: what is used is all that
// there was.
func parallelLeasesAreExact(w *world) {
	k := w.addKey(account.FullAccount, w.account)
	hosts := []ports.Admissions{w.Admissions, w.another(w.T).Admissions}
	var used atomic.Int64
	use := func(host ports.Admissions, rest ratelimit.Stretch) ratelimit.Stretch {
		_, got, err := host.Lease(w.Context(), leaseOf(k, ratelimit.Ask{Requests: 5, Rest: rest}, epoch))
		if err != nil {
			w.Error(err)
		}
		if !got.Empty() {
			used.Add(1)
			got.From = got.From.Add(manyAMinute.Step())
		}
		return got.Stretch
	}
	together(w.T, 8, func(i int) {
		host := hosts[i%2]
		for range 20 {
			rest := use(host, use(host, ratelimit.Stretch{}))
			r := ports.Rest{Key: k.ID, Class: ratelimit.Read, Limit: manyAMinute, Stretch: rest}
			if err := host.Return(w.Context(), []ports.Rest{r}, epoch); err != nil {
				w.Error(err)
			}
		}
	})
	for more := int64(-1); more != used.Load(); {
		more = used.Load()
		use(w.Admissions, use(w.Admissions, ratelimit.Stretch{}))
	}
	w.equal("used", used.Load(), int64(manyAMinute.Count))
}
