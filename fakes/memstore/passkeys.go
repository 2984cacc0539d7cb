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

func (p passkeys) Spend(ctx context.Context, challenge token.Hash, until time.Time) (bool, error) {
	return write(ctx, p.session, func(s *state) (bool, error) {
		if _, spent := s.spentChallenges.get(challenge); spent {
			return false, nil
		}
		s.spentChallenges.put(s.txid, challenge, until)
		return true, nil
	})
}

func (p passkeys) Forget(ctx context.Context, before time.Time, limit int) error {
	return p.write(ctx, func(s *state) error {
		left := limit
		s.spentChallenges.remove(s.txid, func(_ token.Hash, until time.Time) bool {
			over := left > 0 && until.Before(before)
			if over {
				left--
			}
			return over
		})
		return nil
	})
}
