package memstore

import (
	"bytes"
	"context"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

type passkeys struct{ session }

func (p passkeys) Add(ctx context.Context, row person.Passkey) error {
	return p.write(ctx, func(s *state) error {
		if _, known := s.users.get(row.UserID); !known {
			return p.refuse(ports.ErrNoRow)
		}
		if s.passkeys.any(func(other person.Passkey) bool { return bytes.Equal(other.Credential, row.Credential) }) {
			return p.refuse(fault.Invalid("passkey", "is known already"))
		}
		s.passkeys.put(s.txid, row.ID, row)
		return nil
	})
}

func (p passkeys) Of(ctx context.Context, user id.UserID) ([]person.Passkey, error) {
	return read(ctx, p.session, func(s *state) ([]person.Passkey, error) {
		return s.passkeys.having(func(row person.Passkey) bool { return row.UserID == user },
			func(a, b person.Passkey) int { return byTime(a.CreatedAt, string(a.ID), b.CreatedAt, string(b.ID)) }), nil
	})
}

func (p passkeys) ByCredential(ctx context.Context, credential []byte) (person.Passkey, error) {
	return read(ctx, p.session, func(s *state) (person.Passkey, error) {
		for _, row := range s.passkeys.byKey {
			if bytes.Equal(row.Credential, credential) {
				return row, nil
			}
		}
		return person.Passkey{}, ports.ErrNoRow
	})
}

func (p passkeys) Save(ctx context.Context, row person.Passkey) error {
	return p.write(ctx, func(s *state) error {
		stored, ok := s.passkeys.get(row.ID)
		if !ok {
			return ports.ErrNoRow
		}
		stored.Record, stored.UsedAt = bytes.Clone(row.Record), row.UsedAt
		s.passkeys.put(s.txid, row.ID, stored)
		return nil
	})
}

func (p passkeys) Remove(ctx context.Context, user id.UserID, passkey id.PasskeyID) error {
	return p.write(ctx, func(s *state) error {
		if row, ok := s.passkeys.get(passkey); !ok || row.UserID != user {
			return ports.ErrNoRow
		}
		s.passkeys.delete(s.txid, passkey)
		return nil
	})
}

func (p passkeys) Ask(ctx context.Context, c person.Ceremony) error {
	return p.write(ctx, func(s *state) error {
		s.ceremonies.put(s.txid, token.Hash(c.TokenHash), c)
		return nil
	})
}

func (p passkeys) Take(ctx context.Context, hash token.Hash) (person.Ceremony, error) {
	return write(ctx, p.session, func(s *state) (person.Ceremony, error) {
		c, err := found(s.ceremonies.get(hash))
		if err == nil {
			s.ceremonies.delete(s.txid, hash)
		}
		return c, err
	})
}

func (p passkeys) Forget(ctx context.Context, before time.Time, limit int) error {
	return p.write(ctx, func(s *state) error {
		old := s.ceremonies.having(func(c person.Ceremony) bool { return c.ExpiresAt.Before(before) },
			func(a, b person.Ceremony) int { return a.ExpiresAt.Compare(b.ExpiresAt) })
		for _, c := range first(old, limit) {
			s.ceremonies.delete(s.txid, token.Hash(c.TokenHash))
		}
		return nil
	})
}
