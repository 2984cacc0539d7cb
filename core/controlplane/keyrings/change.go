package keyrings

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/keyring"
	"github.com/pgherd/pgherd/ports"
)

const (
	// CrashPromoted is the crash point of a promotion: the new key encrypts, and nothing that is stored was encrypted again.
	CrashPromoted = "keyring.promoted"
	// CrashResealed is where everything was encrypted again, which is not yet recorded.
	CrashResealed = "keyring.resealed"
)

// CrashPoints lists them.
var CrashPoints = []string{CrashPromoted, CrashResealed}

func errNoRing() error { return fault.Invalid("keyring", "this control plane has no ring of keys") }

// change runs fn in a transaction that no other change of the ring, and no host that joins, can interleave with. Hosts that are
// named to be forgotten are, unless they are alive.
func (k *Keyring) change(
	ctx context.Context, forget []string,
	fn func(ctx context.Context, tx ports.Tx, keys keyring.Keys, hosts []keyring.Host, now time.Time) error,
) error {
	if k.base.Ring == nil {
		return errNoRing()
	}
	return k.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.KeyRings().Lock(ctx); err != nil {
			return err
		}
		now := k.base.Clock.Now()
		hosts, err := k.counted(ctx, tx)
		if err != nil {
			return err
		}
		for _, name := range forget {
			if hosts, err = forgets(ctx, tx, hosts, name, now); err != nil {
				return err
			}
		}
		keys, err := tx.KeyRings().Keys(ctx)
		if err != nil {
			return err
		}
		return fn(ctx, tx, keys, hosts, now)
	})
}

func forgets(
	ctx context.Context, tx ports.Tx, hosts []keyring.Host, name string, now time.Time,
) ([]keyring.Host, error) {
	known := false
	for _, h := range hosts {
		if h.Name != name {
			continue
		}
		if known = true; h.Live(now) {
			return nil, fault.Invalid("forget", "%q was heard of %s ago: stop it first, or wait until it is gone for %s",
				name, now.Sub(h.SeenAt).Round(time.Second), keyring.GoneAfter)
		}
		if err := tx.KeyRings().Forget(ctx, h.ID); err != nil {
			return nil, err
		}
	}
	if !known {
		return nil, fault.Invalid("forget", "there is no host %q", name)
	}
	return slices.DeleteFunc(hosts, func(h keyring.Host) bool { return h.Name == name }), nil
}

// Stage registers a key that every host is to have before it encrypts anything. It is done already where that key is staged.
// VALIDATION_ERROR on "key" where another one is, or the key has another status.
func (k *Keyring) Stage(ctx context.Context, f keyring.Fingerprint) error {
	return k.change(ctx, nil, func(
		ctx context.Context, tx ports.Tx, keys keyring.Keys, _ []keyring.Host, now time.Time,
	) error {
		if staged, found := keys.Staged(); found {
			if staged.Fingerprint == f {
				return nil
			}
			return ErrOtherStaged(staged.Fingerprint)
		}
		if slices.Contains(keys.Fingerprints(), f) {
			return fault.Invalid("key", "%s was registered before", f)
		}
		if err := tx.KeyRings().Put(ctx, keyring.Key{Fingerprint: f, Status: keyring.Staged, Since: now}); err != nil {
			return err
		}
		return k.audit(ctx, tx, audit.Operator, audit.KeyringStaged, f)
	})
}

// ErrOtherStaged says that one key is staged at a time.
func ErrOtherStaged(staged keyring.Fingerprint) error {
	return fault.Invalid("key", "%s is staged already, and this ring does not have it: copy the ring that has it here, or give it "+
		"up with pgherd admin secrets unstage", staged)
}

// Unstage gives up the staged key, and returns it. Nothing was ever encrypted with it. VALIDATION_ERROR on "key" where none is.
func (k *Keyring) Unstage(ctx context.Context) (f keyring.Fingerprint, err error) {
	err = k.change(ctx, nil, func(
		ctx context.Context, tx ports.Tx, keys keyring.Keys, _ []keyring.Host, now time.Time,
	) error {
		staged, found := keys.Staged()
		if !found {
			return errNoneStaged()
		}
		f = staged.Fingerprint
		if err := tx.KeyRings().Put(ctx, keyring.Key{Fingerprint: f, Status: keyring.Retired, Since: now}); err != nil {
			return err
		}
		return k.audit(ctx, tx, audit.Operator, audit.KeyringUnstaged, f)
	})
	return f, err
}

func errNoneStaged() error {
	return fault.Invalid("key", "none is staged; pgherd admin secrets stage makes one")
}

// Promotion is what came of a promotion.
type Promotion struct {
	Primary  keyring.Fingerprint
	Resealed Resealed
}

// Promote makes the staged key the one that encrypts, and encrypts everything with it that is stored. Cut off, it goes on with
// the next call, or the next round of a batch host. It returns a *keyring.NotReadyError unless every host has said that it has
// the key. VALIDATION_ERROR on "key" where none is staged and nothing was cut off.
func (k *Keyring) Promote(ctx context.Context, forget ...string) (p Promotion, err error) {
	err = k.change(ctx, forget, func(
		ctx context.Context, tx ports.Tx, keys keyring.Keys, hosts []keyring.Host, now time.Time,
	) error {
		primary, _ := keys.Primary()
		staged, found := keys.Staged()
		if !found {
			p.Primary = primary.Fingerprint
			if primary.ResealedAt != nil {
				return errNoneStaged()
			}
			return nil
		}
		p.Primary = staged.Fingerprint
		if has, err := k.base.Ring.Keys(); err != nil || !has.Has(staged.Fingerprint) {
			return errOr(err, ErrOtherStaged(staged.Fingerprint))
		}
		if err := keyring.AllHave(hosts, staged.Fingerprint, now); err != nil {
			return err
		}
		replaced := keyring.Key{Fingerprint: primary.Fingerprint, Status: keyring.Old, Since: now}
		if err := tx.KeyRings().Put(ctx, replaced); err != nil {
			return err
		}
		promoted := keyring.Key{Fingerprint: staged.Fingerprint, Status: keyring.Primary, Since: now}
		if err := tx.KeyRings().Put(ctx, promoted); err != nil {
			return err
		}
		return k.audit(ctx, tx, audit.Operator, audit.KeyringPromoted, staged.Fingerprint, primary.Fingerprint)
	})
	if err != nil {
		return Promotion{}, err
	}
	k.base.Crash(CrashPromoted)
	p.Resealed, err = k.finish(ctx)
	return p, err
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// Pruned is what came of dropping keys.
type Pruned struct {
	Primary  keyring.Fingerprint
	Dropped  []keyring.Fingerprint // by now, or before: no ring needs them any more
	Resealed Resealed
}

// Prune retires the keys that encrypt no more, once nothing that is stored needs them. It encrypts again what a host has written
// with one of them after the promotion. It returns a *keyring.NotReadyError unless every host encrypts with the primary.
// VALIDATION_ERROR on "settle" while the primary encrypts for less than that, and on "key" where a stored secret needs a key that
// this ring does not have.
func (k *Keyring) Prune(ctx context.Context, settle time.Duration, forget ...string) (p Pruned, err error) {
	settled := func(
		_ context.Context, _ ports.Tx, keys keyring.Keys, hosts []keyring.Host, now time.Time,
	) error {
		if len(keys.In(keyring.Old)) == 0 {
			return nil
		}
		primary, _ := keys.Primary()
		if left := settle - now.Sub(primary.Since); left > 0 {
			return fault.Invalid("settle", "the key %s encrypts for less than %s: wait another %s",
				primary.Fingerprint, settle, left.Round(time.Second))
		}
		return keyring.AllSealWith(hosts, primary.Fingerprint, now)
	}
	if err := k.change(ctx, forget, settled); err != nil {
		return p, err
	}
	if p.Resealed, err = k.finish(ctx); err != nil {
		return p, err
	}
	if err := k.needsNoOther(ctx); err != nil {
		return p, err
	}
	err = k.change(ctx, nil, func(
		ctx context.Context, tx ports.Tx, keys keyring.Keys, hosts []keyring.Host, now time.Time,
	) error {
		if err := settled(ctx, tx, keys, hosts, now); err != nil {
			return err
		}
		primary, _ := keys.Primary()
		p.Primary = primary.Fingerprint
		old := keys.In(keyring.Old).Fingerprints()
		p.Dropped = append(keys.In(keyring.Retired).Fingerprints(), old...)
		if len(old) == 0 {
			return nil
		}
		for _, f := range old {
			if err := tx.KeyRings().Put(ctx, keyring.Key{Fingerprint: f, Status: keyring.Retired, Since: now}); err != nil {
				return err
			}
		}
		return k.audit(ctx, tx, audit.Operator, audit.KeyringPruned, old...)
	})
	return p, err
}

// needsNoOther fails where a stored secret needs one of the old keys. One that was encrypted with none of this ring's keys needs
// none of them, as long as the ring has them all; one that is damaged needs nothing.
func (k *Keyring) needsNoOther(ctx context.Context) error {
	has, err := k.base.Ring.Keys()
	if err != nil {
		return err
	}
	keys, err := k.keys(ctx)
	if err != nil {
		return err
	}
	lacking := slices.DeleteFunc(keys.In(keyring.Old).Fingerprints(), has.Has)
	primary := k.sealing()
	var needing []string
	err = k.eachSealed(ctx, func(v ports.SealedValue) error {
		by := k.base.Ring.SealedBy(v.Sealed)
		if by == primary || by == "" && len(lacking) == 0 {
			return nil
		}
		if _, err := k.base.Secrets.Open(v.Sealed, v.Context); err == nil || by == "" {
			needing = append(needing, v.Ref)
		}
		return nil
	})
	if err == nil && len(needing) > 0 {
		return fault.Invalid("key", "%d stored secrets need a key that would be dropped, or that this ring does not have: %s",
			len(needing), strings.Join(needing[:min(len(needing), namedAtMost)], ", "))
	}
	return err
}

// namedAtMost bounds how many values a message names.
const namedAtMost = 5
