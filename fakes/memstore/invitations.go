package memstore

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

var errInvitationTwice = errors.New("the address has an invitation, or another one has the token")

type invitations struct{ session }

// listed reports whether an invitation still has the place of its address.
func listed(i member.Invitation) bool { return i.Status == member.Open || i.Status == member.Expired }

// takes reports whether two invitations cannot be stored beside one another.
func takes(i, other member.Invitation) bool {
	sameAddress := i.DatabaseID == other.DatabaseID && i.Email == other.Email && listed(i) && listed(other)
	return i.ID != other.ID && (sameAddress || bytes.Equal(i.TokenHash, other.TokenHash))
}

func (i invitations) put(s *state, row member.Invitation) error {
	if s.invitations.any(func(other member.Invitation) bool { return takes(row, other) }) {
		return i.refuse(errInvitationTwice)
	}
	row.TokenHash = bytes.Clone(row.TokenHash)
	s.invitations.put(s.txid, row.ID, row)
	return nil
}

func (i invitations) Add(ctx context.Context, row member.Invitation) error {
	return i.write(ctx, func(s *state) error {
		if _, ok := s.databases.get(row.DatabaseID); !ok {
			return i.refuse(ports.ErrNoRow)
		}
		return i.put(s, row)
	})
}

func (i invitations) Get(ctx context.Context, db id.DatabaseID, invitation id.InvitationID) (member.Invitation, error) {
	return read(ctx, i.session, func(s *state) (member.Invitation, error) {
		row, ok := s.invitations.get(invitation)
		return found(row, ok && row.DatabaseID == db)
	})
}

func (i invitations) ByToken(ctx context.Context, hash token.Hash) (member.Invitation, error) {
	return read(ctx, i.session, func(s *state) (member.Invitation, error) {
		for _, row := range s.invitations.byKey {
			if hash.Equals(row.TokenHash) {
				return row, nil
			}
		}
		return member.Invitation{}, ports.ErrNoRow
	})
}

func (i invitations) List(ctx context.Context, db id.DatabaseID) ([]member.Invitation, error) {
	return read(ctx, i.session, func(s *state) ([]member.Invitation, error) {
		return s.invitations.having(func(row member.Invitation) bool { return row.DatabaseID == db && listed(row) },
			func(a, b member.Invitation) int { return byTime(a.CreatedAt, string(a.ID), b.CreatedAt, string(b.ID)) }), nil
	})
}

func (i invitations) Save(ctx context.Context, row member.Invitation) error {
	return i.write(ctx, func(s *state) error {
		stored, ok := s.invitations.get(row.ID)
		if !ok {
			return ports.ErrNoRow
		}
		row.AccountID, row.DatabaseID, row.Email, row.CreatedAt = stored.AccountID, stored.DatabaseID, stored.Email, stored.CreatedAt
		return i.put(s, row)
	})
}

func (i invitations) Overdue(ctx context.Context, now time.Time, limit int) ([]member.Invitation, error) {
	return read(ctx, i.session, func(s *state) ([]member.Invitation, error) {
		return first(s.invitations.having(
			func(row member.Invitation) bool { return row.Status == member.Open && !row.ExpiresAt.After(now) },
			func(a, b member.Invitation) int { return byTime(a.ExpiresAt, string(a.ID), b.ExpiresAt, string(b.ID)) }), limit), nil
	})
}

func (i invitations) Forget(ctx context.Context, before time.Time, limit int) error {
	return i.write(ctx, func(s *state) error {
		for _, row := range first(s.invitations.having(
			func(row member.Invitation) bool { return row.EndedAt != nil && row.EndedAt.Before(before) },
			func(a, b member.Invitation) int { return byTime(*a.EndedAt, string(a.ID), *b.EndedAt, string(b.ID)) }), limit) {
			s.invitations.delete(s.txid, row.ID)
		}
		return nil
	})
}
