package keyrings

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/keyring"
	"github.com/pgherd/pgherd/ports"
)

// resealLimit bounds one round that encrypts again. What it has done by then stays done.
const resealLimit = 10 * time.Minute

// Resealed is what came of encrypting again.
type Resealed struct {
	Changed int
	// Unreadable are the references of the values that the ring does not open. They stay as they are.
	Unreadable []string
}

// resume finishes a promotion that was cut off, wherever that was.
func (k *Keyring) resume(ctx context.Context, _ time.Time) error {
	if k.base.Ring == nil {
		return nil
	}
	keys, err := k.keys(ctx)
	if primary, found := keys.Primary(); err != nil || !found || primary.ResealedAt != nil {
		return err
	}
	_, err = k.finish(ctx)
	return err
}

// finish encrypts everything with the primary, and records that.
func (k *Keyring) finish(ctx context.Context) (r Resealed, err error) {
	if err := k.Refresh(ctx); err != nil {
		return r, err
	}
	with := k.sealing()
	if r, err = k.Reseal(ctx); err != nil {
		return r, err
	}
	k.base.Crash(CrashResealed)
	return r, k.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.KeyRings().Lock(ctx); err != nil {
			return err
		}
		keys, err := tx.KeyRings().Keys(ctx)
		primary, _ := keys.Primary()
		if err != nil || primary.Fingerprint != with || primary.ResealedAt != nil {
			return err
		}
		now := k.base.Clock.Now()
		primary.ResealedAt = &now
		return tx.KeyRings().Put(ctx, primary)
	})
}

// sealing is the key that the ring was last told to encrypt with.
func (k *Keyring) sealing() keyring.Fingerprint {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.host.Seals
}

// resealBatch bounds one transaction of Reseal.
const resealBatch = 100

// Reseal encrypts again what is stored and not encrypted with the key that the ring encrypts with; all of it where there is no
// Ports.Ring. It can be interrupted and run again.
func (k *Keyring) Reseal(ctx context.Context) (r Resealed, err error) {
	for after := ""; ; {
		var batch []ports.SealedValue
		var done Resealed
		err := k.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
			done = Resealed{}
			if batch, err = tx.SealedValues().Next(ctx, after, resealBatch); err != nil {
				return err
			}
			for _, v := range batch {
				if err := k.reseal(ctx, tx, v, &done); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(batch) == 0 {
			return r, err
		}
		r.Changed += done.Changed
		r.Unreadable = append(r.Unreadable, done.Unreadable...)
		after = batch[len(batch)-1].Ref
	}
}

func (k *Keyring) reseal(ctx context.Context, tx ports.Tx, v ports.SealedValue, done *Resealed) error {
	if k.base.Ring != nil && k.base.Ring.SealedBy(v.Sealed) == k.sealing() {
		return nil
	}
	plain, err := k.base.Secrets.Open(v.Sealed, v.Context)
	if err != nil {
		done.Unreadable = append(done.Unreadable, v.Ref)
		return nil //nolint:nilerr // it stays: a value that cannot be read does not stop the others
	}
	sealed, err := k.base.Secrets.Seal(plain, v.Context)
	if err != nil {
		return err
	}
	done.Changed++
	return tx.SealedValues().Replace(ctx, v, sealed)
}

// eachSealed calls visit with every stored secret, still encrypted. An error of visit ends the iteration.
func (k *Keyring) eachSealed(ctx context.Context, visit func(v ports.SealedValue) error) error {
	for after := ""; ; {
		batch, err := ports.Read(ctx, k.base.Store, func(ctx context.Context, tx ports.Tx) ([]ports.SealedValue, error) {
			return tx.SealedValues().Next(ctx, after, resealBatch)
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		for _, v := range batch {
			if err := visit(v); err != nil {
				return err
			}
		}
		after = batch[len(batch)-1].Ref
	}
}
