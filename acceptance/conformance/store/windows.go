package store

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

func reservation(k account.Key, now time.Time) ports.Reservation {
	return ports.Reservation{
		Credential: account.Credential{Kind: k.Kind, ID: k.ID, Hash: [32]byte(k.Hash)},
		Class:      ratelimit.Reservation, Limit: sixAnHour, Now: now,
	}
}

func (w *world) reserve(k account.Key, now time.Time) decided {
	w.Helper()
	a, d, err := w.Admissions.Reserve(w.Context(), reservation(k, now))
	if err != nil {
		w.Fatal(err)
	}
	return decided{a, d}
}

// windowIsTheCores compares each decision with ratelimit.Window's, for hosts whose clocks are apart, and are set back once.
func windowIsTheCores(w *world) {
	k, now, window := w.addKey(account.FullAccount, w.account), epoch, ratelimit.Window{}
	other := w.another(w.T).Admissions
	dice := rand.New(rand.NewPCG(1, 2))
	for step := range 200 {
		if now = now.Add(time.Duration(dice.IntN(3)*dice.IntN(600)) * time.Second); step == 100 {
			now = epoch
		}
		at, from := now, w.Admissions
		if dice.IntN(2) == 0 {
			at, from = now.Add(50*time.Second), other
		}
		a, got, err := from.Reserve(w.Context(), reservation(k, at))
		if err != nil {
			w.Fatal(err)
		}
		w.equal("the decision at step "+numbered(step), got, window.Take(sixAnHour, at))
		w.equal("the key", a.Key, k)
	}
}

func parallelReservationsAreExact(w *world) {
	k := w.addKey(account.FullAccount, w.account)
	hosts := []ports.Admissions{w.Admissions, w.another(w.T).Admissions}
	var admitted atomic.Int64
	for _, at := range []time.Time{epoch, epoch.Add(10 * time.Minute), epoch.Add(time.Hour - time.Microsecond)} {
		together(w.T, 20, func(i int) {
			_, d, err := hosts[i%2].Reserve(w.Context(), reservation(k, at))
			switch {
			case err != nil:
				w.Error(err)
			case d.Allowed:
				admitted.Add(1)
			case d.RetryAfter != epoch.Add(time.Hour).Sub(at):
				w.Errorf("refused for %s", d.RetryAfter)
			}
		})
		w.equal("reservations within an hour", admitted.Load(), int64(6))
	}
	w.equal("what is left an hour later", w.reserve(k, epoch.Add(time.Hour)).Decision.Remaining, 5)
}

func windowIsGuarded(w *world) {
	k := w.addKey(account.FullAccount, w.account)
	guessed := k
	guessed.Hash = make([]byte, 32)
	for range 10 {
		if a := w.reserve(guessed, epoch); a.Key.Accepts([32]byte(guessed.Hash), epoch) || a.Decision.Allowed {
			w.Error("a guessed secret is accepted")
		}
	}
	w.equal("what is left after ten guesses", w.reserve(k, epoch).Decision.Remaining, 5)
	w.equal("what is left of another class", w.admit(k, epoch).Decision.Remaining, 5)
}

func sweepForgetsPassedWindows(w *world) {
	k := w.addKey(account.FullAccount, w.account)
	w.reserve(k, epoch)
	w.reserve(k, minutes(10))
	for _, now := range []time.Time{minutes(59), minutes(70)} {
		noError(w, w.Admissions.Sweep(w.Context(), now))
	}
	w.equal("what is left after a sweep", w.reserve(k, minutes(60)).Decision.Remaining, 4)
	noError(w, w.Admissions.Sweep(w.Context(), minutes(121)))
	w.equal("what is left of a forgotten window", w.reserve(k, minutes(61)).Decision.Remaining, 5)
}
