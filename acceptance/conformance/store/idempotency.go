package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/ports"
)

// Idempotency is the suite of ports.Idempotency.
func Idempotency(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a known key returns its record", knownKeyReturnsRecord},
		{"keys of accounts and routes are apart", keysAreApart},
		{"200 parallel claims make one", parallelClaimsMakeOne},
		{"a claim waits for the one that is under way", claimWaits},
	})
}

func (w *world) request(key idempotency.Key) idempotency.Record {
	return idempotency.Record{
		AccountID: w.account.ID, Route: "POST /databases", Key: key, Fingerprint: "f-1",
		ResourceID: newID[string](), CreatedAt: epoch,
	}
}

func claimKey(
	ctx context.Context, s ports.Store, r idempotency.Record,
) (stored idempotency.Record, fresh bool, err error) {
	err = s.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		stored, fresh, err = tx.Idempotency().Claim(ctx, r)
		return err
	})
	return stored, fresh, err
}

func (w *world) wantClaim(what string, r, want idempotency.Record, wantFresh bool) {
	w.Helper()
	got, fresh, err := claimKey(w.Context(), w.Store, r)
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
	w.equal(what+": fresh", fresh, wantFresh)
	w.equal(what, got, want)
}

func knownKeyReturnsRecord(w *world) {
	first := w.request(idempotency.Key(strings.Repeat("ключ", 50)))
	find := func(ctx context.Context, tx ports.Tx) error {
		found, err := tx.Idempotency().Get(ctx, first.AccountID, first.Route, first.Key)
		if err == nil {
			w.equal("the record of the key", found, first)
		}
		return err
	}
	w.missing("a key that is new", find)
	w.wantClaim("a new key", first, first, true)
	w.view(find)
	again := w.request(first.Key)
	again.Fingerprint, again.CreatedAt = "f-2", minutes(5)
	w.wantClaim("the same key", again, first, false)
}

func keysAreApart(w *world) {
	_, theirs := w.addAccount("bob@example.com")
	first := w.request("k")
	w.wantClaim("a new key", first, first, true)
	route, owner, letters := w.request("k"), w.request("k"), w.request("K")
	route.Route, owner.AccountID = "POST /other", theirs.ID
	w.wantClaim("on another route", route, route, true)
	w.wantClaim("of another account", owner, owner, true)
	w.wantClaim("in another case", letters, letters, true)
	nobody := w.request("k")
	nobody.AccountID = newID[id.AccountID]()
	if _, _, err := claimKey(w.Context(), w.Store, nobody); !errors.Is(err, ports.ErrNoRow) {
		w.Errorf("a key of no account: %v", err)
	}
}

func parallelClaimsMakeOne(w *world) {
	const claims = 200
	hosts := w.stores()
	stored, fresh := make([]idempotency.Record, claims), make([]bool, claims)
	together(w.T, claims, func(i int) {
		var err error
		stored[i], fresh[i], err = claimKey(w.Context(), hosts[i%len(hosts)], w.request("k"))
		if err != nil {
			w.Error(err)
		}
	})
	winners := 0
	for i := range stored {
		w.equal("the record that a claim returned", stored[i], stored[0])
		if fresh[i] {
			winners++
		}
	}
	w.equal("claims that were fresh", winners, 1)
}

func claimWaits(w *world) {
	first, second := w.request("k"), w.request("k")
	other := w.another(w.T).Store
	type outcome struct {
		record idempotency.Record
		fresh  bool
		err    error
	}
	done := make(chan outcome, 2)
	begun := false
	w.update(func(ctx context.Context, tx ports.Tx) error {
		if _, fresh, err := tx.Idempotency().Claim(ctx, first); err != nil || !fresh {
			return errors.Join(err, errors.New("the first claim is not fresh"))
		}
		if !begun {
			begun = true
			go func() {
				record, fresh, err := claimKey(context.WithoutCancel(ctx), other, second)
				done <- outcome{record, fresh, err}
			}()
		}
		select {
		case o := <-done:
			w.Errorf("a claim did not wait for the one under way: fresh %v (%v)", o.fresh, o.err)
		case <-time.After(100 * time.Millisecond):
		}
		return nil
	})
	select {
	case o := <-done:
		if o.err != nil || o.fresh {
			w.Errorf("the claim that waited: fresh %v (%v)", o.fresh, o.err)
		}
		w.equal("what the claim that waited got", o.record, first)
	case <-time.After(10 * time.Second):
		w.Error("the claim that waited has never ended")
	}
}
