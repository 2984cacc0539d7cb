package memstore

import (
	"bytes"
	"context"
	"time"

	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

type signingKeys struct{ session }

func signs(k certificate.Key) bool { return k.RetiredAt == nil }

// ofKey is a row that shares nothing with its caller's.
func ofKey(k certificate.Key) certificate.Key {
	k.PublicKey, k.SealedSeed = bytes.Clone(k.PublicKey), bytes.Clone(k.SealedSeed)
	return k
}

func (r signingKeys) Add(ctx context.Context, k certificate.Key) error {
	return r.write(ctx, func(s *state) error {
		if s.signingKeys.any(signs) {
			return r.refuse(certificate.ErrKeySigns())
		}
		s.signingKeys.put(s.txid, k.ID, ofKey(k))
		return nil
	})
}

func (r signingKeys) Current(ctx context.Context) (certificate.Key, error) {
	return read(ctx, r.session, func(s *state) (certificate.Key, error) {
		for _, k := range s.signingKeys.having(signs, nil) {
			return ofKey(k), nil
		}
		return certificate.Key{}, ports.ErrNoRow
	})
}

func (r signingKeys) Retire(ctx context.Context, key id.CertificateKeyID, now time.Time) error {
	return r.write(ctx, func(s *state) error {
		k, found := s.signingKeys.get(key)
		if !found || !signs(k) {
			return ports.ErrNoRow
		}
		k.RetiredAt, k.SealedSeed = &now, nil
		s.signingKeys.put(s.txid, key, k)
		return nil
	})
}

func (r signingKeys) List(ctx context.Context, p ports.Page) ([]certificate.Key, error) {
	return read(ctx, r.session, func(s *state) ([]certificate.Key, error) {
		list := each(s.signingKeys.having(func(certificate.Key) bool { return true }, nil), ofKey)
		position := func(k certificate.Key) ports.Position { return ports.Position{At: k.CreatedAt, ID: string(k.ID)} }
		return pagedByID(list, p, position, -1)
	})
}
