package store

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/network"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// Admissions is the suite of ports.Admissions.
func Admissions(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a key is found with all that the checks need", keyIsAdmitted},
		{"a key is found with what a read of a database needs", keyIsFoundForRead},
		{"a bucket decides as the core does", bucketIsTheCores},
		{"buckets of keys and classes are apart", bucketsAreApart},
		{"nobody drains the bucket of a key that he does not know", bucketIsGuarded},
		{"an expired key lets nobody in, and its bucket is not touched", expiredKeyIsShut},
		{"a key outside its networks lets nobody in, and its bucket is not touched", foreignKeyIsShut},
		{"50 parallel requests take exactly what is there", parallelTakesAreExact},
		{"a clock that was moved back shuts no bucket for long", clockMovedBack},
		{"the last use of a key only grows", lastUseGrows},
		{"a sweep forgets full buckets alone", sweepForgetsFull},
		{"leases are granted and taken back as in the core", leasesAreTheCores},
		{"hosts that lease together let in exactly what is there", parallelLeasesAreExact},
		{"a window decides as the core's does", windowIsTheCores},
		{"hosts that reserve together let in exactly six", parallelReservationsAreExact},
		{"nobody uses up the window of a key that he does not know", windowIsGuarded},
		{"a sweep forgets passed windows alone", sweepForgetsPassedWindows},
	})
}

var sixAnHour = ratelimit.Limit{Count: 6, Period: time.Hour}

// decided is a request that asked the bucket for itself alone.
type decided struct {
	ports.Admission
	Decision ratelimit.Decision
}

func (w *world) admit(k account.Key, now time.Time) decided {
	w.Helper()
	return must(decide(w.Context(), w.Admissions, request(k, ratelimit.Create, now)))(w)
}

func decide(ctx context.Context, from ports.Admissions, r ports.LeaseRequest) (decided, error) {
	a, grant, err := from.Lease(ctx, r)
	_, d := ratelimit.Begin(r.Limit, grant, r.Now)
	return decided{a, d}, err
}

func request(k account.Key, class ratelimit.Class, now time.Time) ports.LeaseRequest {
	return ports.LeaseRequest{
		Credential: account.Credential{Kind: k.Kind, ID: k.ID, Hash: [32]byte(k.Hash)},
		Class:      class, Limit: sixAnHour, Ask: ratelimit.Ask{Requests: 1}, Now: now,
	}
}

func keyIsAdmitted(w *world) {
	k := w.addKey(account.SelectedDatabases, w.account)
	limit := 3
	w.account.MaxDatabases = &limit
	w.update(writing(ports.Tx.Accounts, ports.Accounts.Save, w.account))
	for i, maintenance := range []bool{false, true, false} {
		w.update(writing(ports.Tx.Switches, ports.Switches.SetMaintenance, maintenance))
		a := w.admit(k, epoch)
		w.equal("the key", a.Key, k)
		w.equal("the account", a.Account, w.account)
		w.equal("the maintenance window", a.Maintenance, maintenance)
		w.equal("what is left", a.Decision.Remaining, 5-i)
		found := must(w.Admissions.Find(w.Context(), k.ID))(w)
		w.equal("what is found without a lease", found, a.Admission)
	}
	unknown := k
	unknown.ID = "00000000"
	if _, _, err := w.Admissions.Lease(w.Context(), request(unknown, ratelimit.Read, epoch)); !errors.Is(err, ports.ErrNoRow) {
		w.Errorf("an unknown key: %v", err)
	}
	if _, err := w.Admissions.Find(w.Context(), unknown.ID); !errors.Is(err, ports.ErrNoRow) {
		w.Errorf("an unknown key: %v", err)
	}
}

// bucketIsTheCores goes through a burst, refusals and drops that drain, and compares each answer with ratelimit.Decide.
func bucketIsTheCores(w *world) {
	k := w.addKey(account.FullAccount, w.account)
	var tat time.Time
	now := epoch
	for i, wait := range []time.Duration{
		0, 0, 0, 0, 0, 0, 0, 0, 9*time.Minute + 59*time.Second, time.Second, 0, 25 * time.Minute, 0, 0, 0, 3 * time.Hour, 0, 0,
		0, 0, 0, 0, 10 * time.Minute, 0,
	} {
		now = now.Add(wait)
		want := ratelimit.Decide(sixAnHour, tat, now)
		tat = want.TAT
		w.equal("the key's bucket at step "+numbered(i), w.admit(k, now).Decision, want)
		got := must(w.Admissions.Take(w.Context(), "address/192.0.2.1", sixAnHour, now))(w)
		w.equal("the address's bucket at step "+numbered(i), got, want)
	}
}

func bucketsAreApart(w *world) {
	one, other := w.addKey(account.FullAccount, w.account), w.addKey(account.FullAccount, w.account)
	for range 7 {
		w.admit(one, epoch)
	}
	w.equal("the drained bucket", w.admit(one, epoch).Decision.Allowed, false)
	w.equal("another key's", w.admit(other, epoch).Decision.Remaining, 5)
	a := must(decide(w.Context(), w.Admissions, request(one, ratelimit.Read, epoch)))(w)
	w.equal("another class's", a.Decision.Remaining, 5)
	on := w.another(w.T)
	a = must(decide(w.Context(), on.Admissions, request(one, ratelimit.Create, epoch)))(w)
	w.equal("the drained bucket, on another host", a.Decision.Allowed, false)
}

func bucketIsGuarded(w *world) {
	k, revoked := w.addKey(account.FullAccount, w.account), w.addKey(account.FullAccount, w.account)
	at := minutes(1)
	revoked.RevokedAt = &at
	w.update(writing(ports.Tx.Keys, ports.Keys.Revoke, revoked))
	guessed := k
	guessed.Hash = make([]byte, 32)
	for range 10 {
		a := w.admit(guessed, epoch)
		if a.Key.Accepts([32]byte(guessed.Hash), epoch) {
			w.Error("a guessed secret is accepted")
		}
		if a = w.admit(revoked, epoch); a.Key.Accepts([32]byte(revoked.Hash), epoch) {
			w.Error("a revoked key is accepted")
		}
	}
	w.equal("what is left after ten guesses", w.admit(k, epoch).Decision.Remaining, 5)
	revoked.RevokedAt = nil
	w.update(writing(ports.Tx.Keys, ports.Keys.Revoke, revoked))
	w.equal("what is left of the revoked key's", w.admit(revoked, epoch).Decision.Remaining, 5)
}

func expiredKeyIsShut(w *world) {
	k := w.addCIKey(w.addNamespace("main"), 0)
	for what, now := range map[string]time.Time{"at its end": *k.ExpiresAt, "after it": k.ExpiresAt.Add(time.Hour)} {
		if a := w.admit(k, now); a.Key.Accepts([32]byte(k.Hash), now) || a.Decision.Allowed {
			w.Errorf("%s it is accepted: %+v", what, a.Decision)
		}
		if a := w.reserve(k, now); a.Key.Accepts([32]byte(k.Hash), now) || a.Decision.Allowed {
			w.Errorf("%s it reserves: %+v", what, a.Decision)
		}
	}
	just := k.ExpiresAt.Add(-time.Microsecond)
	w.equal("what is left just before its end", w.admit(k, just).Decision.Remaining, 5)
	w.equal("what is left of the window", w.reserve(k, just).Decision.Remaining, 5)
}

// foreignKeyIsShut compares whose bucket is touched with account.Key.Admits.
func foreignKeyIsShut(w *world) {
	for _, networks := range []network.List{"", "10.0.0.0/8", "192.0.2.7/32 2001:db8::/32", "0.0.0.0/0", "::/0"} {
		k := w.addKey(account.FullAccount, w.account)
		k.Networks = networks
		w.update(writing(ports.Tx.Keys, ports.Keys.Bind, k))
		left := 6
		for _, text := range []string{"10.1.2.3", "::ffff:10.1.2.3", "192.0.2.7", "192.0.2.8", "2001:db8::1", "2001:db9::1", ""} {
			var from netip.Addr
			if text != "" {
				from = netip.MustParseAddr(text)
			}
			lease, reserve := request(k, ratelimit.Create, epoch), reservation(k, epoch)
			lease.Client, reserve.Client = from, from
			a, err := decide(w.Context(), w.Admissions, lease)
			b, d, reserveErr := w.Admissions.Reserve(w.Context(), reserve)
			if err != nil || reserveErr != nil {
				w.Fatal(err, reserveErr)
			}
			if k.Admits([32]byte(k.Hash), from, epoch) {
				left = max(0, left-1)
				w.equal("what is left of the bucket", a.Decision.Remaining, left)
				w.equal("what is left of the window", d.Remaining, left)
			}
			w.equal("the key", a.Key, k)
			w.equal("the key that reserves", b.Key, k)
		}
		k.Networks = ""
		w.update(writing(ports.Tx.Keys, ports.Keys.Bind, k))
		if left > 0 {
			w.equal("what is left at the end", w.admit(k, epoch).Decision.Remaining, left-1)
			w.equal("what is left of the window at the end", w.reserve(k, epoch).Decision.Remaining, left-1)
		}
	}
}

func parallelTakesAreExact(w *world) {
	const requests = 50
	k := w.addKey(account.FullAccount, w.account)
	hosts := []ports.Admissions{w.Admissions, w.another(w.T).Admissions}
	var admitted, taken, unexplained atomic.Int64
	together(w.T, requests, func(i int) {
		a, err := decide(w.Context(), hosts[i%2], request(k, ratelimit.Create, epoch))
		tally(w, a.Decision, err, &admitted, &unexplained)
		d, err := hosts[i%2].Take(w.Context(), "address/192.0.2.1", sixAnHour, epoch)
		tally(w, d, err, &taken, &unexplained)
	})
	w.equal("admitted in one hour", admitted.Load(), int64(6))
	w.equal("taken in one hour", taken.Load(), int64(6))
	w.equal("refusals that do not say when to come again", unexplained.Load(), int64(0))
}

func tally(w *world, d ratelimit.Decision, err error, allowed, unexplained *atomic.Int64) {
	switch {
	case err != nil:
		w.Error(err)
	case d.Allowed:
		allowed.Add(1)
	case d.RetryAfter != 10*time.Minute || d.Reset != time.Hour || d.Limit != 6 || d.Remaining != 0:
		unexplained.Add(1)
	}
}

func clockMovedBack(w *world) {
	k := w.addKey(account.FullAccount, w.account)
	w.admit(k, epoch.Add(1000*time.Hour))
	d := w.admit(k, epoch).Decision
	if d.Allowed || d.RetryAfter > time.Hour {
		w.Errorf("after the clock was moved back: allowed %v, again in %v", d.Allowed, d.RetryAfter)
	}
	w.equal("an hour later", w.admit(k, epoch.Add(time.Hour)).Decision.Allowed, true)
}

func lastUseGrows(w *world) {
	k, unused := w.addKey(account.FullAccount, w.account), w.addKey(account.FullAccount, w.account)
	for _, minute := range []int{5, 3, 9} {
		noError(w, w.Admissions.Touch(w.Context(), map[id.KeyID]time.Time{k.ID: minutes(minute), "00000000": epoch}))
	}
	last := minutes(9)
	k.LastUsedAt = &last
	w.equal("the used key", getKey(w, k.ID), k)
	w.equal("the unused key", getKey(w, unused.ID), unused)
	w.equal("the used key, admitted", w.admit(k, epoch).Key, k)
	if err := w.Admissions.Touch(w.Context(), nil); err != nil {
		w.Error(err)
	}
	together(w.T, 8, func(i int) {
		used := map[id.KeyID]time.Time{k.ID: minutes(10 + i), unused.ID: minutes(10 + i)}
		if err := w.Admissions.Touch(w.Context(), used); err != nil {
			w.Error(err)
		}
	})
	w.equal("the last of many uses", *getKey(w, unused.ID).LastUsedAt, minutes(17))
}

func sweepForgetsFull(w *world) {
	k := w.addKey(account.FullAccount, w.account)
	w.admit(k, epoch)
	w.admit(k, epoch)
	for _, now := range []time.Time{epoch, minutes(19)} {
		noError(w, w.Admissions.Sweep(w.Context(), now))
	}
	w.equal("what is left after a sweep of full buckets", w.admit(k, epoch).Decision.Remaining, 3)
	noError(w, w.Admissions.Sweep(w.Context(), minutes(60)))
	w.equal("what is left after the bucket was swept", w.admit(k, epoch).Decision.Remaining, 5)
}
