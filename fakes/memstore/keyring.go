package memstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/keyring"
)

type keyRings struct{ session }

// Lock does nothing more: transactions take turns anyway.
func (k keyRings) Lock(ctx context.Context) error {
	return k.write(ctx, func(*state) error { return nil })
}

func (k keyRings) Keys(ctx context.Context) (keyring.Keys, error) {
	return read(ctx, k.session, func(s *state) (keyring.Keys, error) {
		return s.ringKeys.having(func(keyring.Key) bool { return true },
			func(a, b keyring.Key) int { return cmp.Compare(a.Fingerprint, b.Fingerprint) }), nil
	})
}

var errTwoKeys = errors.New("another key has the status")

func (k keyRings) Put(ctx context.Context, key keyring.Key) error {
	return k.write(ctx, func(s *state) error {
		alone := key.Status == keyring.Staged || key.Status == keyring.Primary
		if alone && s.ringKeys.any(func(other keyring.Key) bool {
			return other.Status == key.Status && other.Fingerprint != key.Fingerprint
		}) {
			return k.refuse(errTwoKeys)
		}
		s.ringKeys.put(s.txid, key.Fingerprint, key)
		return nil
	})
}

func (k keyRings) Hosts(ctx context.Context) ([]keyring.Host, error) {
	return read(ctx, k.session, func(s *state) ([]keyring.Host, error) {
		return each(s.ringHosts.having(func(keyring.Host) bool { return true }, func(a, b keyring.Host) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
		}), ofHost), nil
	})
}

// ofHost is a row that shares nothing with its caller's.
func ofHost(h keyring.Host) keyring.Host {
	h.Keys = slices.Clone(h.Keys)
	return h
}

func (k keyRings) Report(ctx context.Context, h keyring.Host) error {
	return k.write(ctx, func(s *state) error {
		s.ringHosts.put(s.txid, h.ID, ofHost(h))
		return nil
	})
}

func (k keyRings) Forget(ctx context.Context, h id.RingHostID) error {
	return k.write(ctx, func(s *state) error {
		s.ringHosts.delete(s.txid, h)
		return nil
	})
}

func (k keyRings) ForgetBefore(ctx context.Context, seen time.Time) error {
	return k.write(ctx, func(s *state) error {
		s.ringHosts.remove(s.txid, func(_ id.RingHostID, h keyring.Host) bool { return h.SeenAt.Before(seen) })
		return nil
	})
}
