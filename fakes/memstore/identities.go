package memstore

import (
	"context"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/ports"
)

type identities struct{ session }

func (i identities) Add(ctx context.Context, row person.Identity) error {
	return i.write(ctx, func(s *state) error {
		if _, known := s.users.get(row.UserID); !known {
			return i.refuse(ports.ErrNoRow)
		}
		if s.identities.any(func(other person.Identity) bool {
			return other.Issuer == row.Issuer && (other.Subject == row.Subject || other.UserID == row.UserID)
		}) {
			return i.refuse(fault.Invalid("subject", "is linked already"))
		}
		s.identities.put(s.txid, identityKey{row.Issuer, row.Subject}, row)
		return nil
	})
}

func (i identities) BySubject(ctx context.Context, issuer, subject string) (person.Identity, error) {
	return read(ctx, i.session, func(s *state) (person.Identity, error) {
		return found(s.identities.get(identityKey{issuer, subject}))
	})
}

func (i identities) Of(ctx context.Context, user id.UserID) ([]person.Identity, error) {
	return read(ctx, i.session, func(s *state) ([]person.Identity, error) {
		return s.identities.having(func(row person.Identity) bool { return row.UserID == user },
			func(a, b person.Identity) int { return byTime(a.CreatedAt, a.Issuer, b.CreatedAt, b.Issuer) }), nil
	})
}

func (i identities) Remove(ctx context.Context, user id.UserID) error {
	return i.write(ctx, func(s *state) error {
		if !s.identities.any(func(row person.Identity) bool { return row.UserID == user }) {
			return ports.ErrNoRow
		}
		s.identities.remove(s.txid, func(_ identityKey, row person.Identity) bool { return row.UserID == user })
		return nil
	})
}
