package memstore

import (
	"context"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/ports"
)

type members struct{ session }

func (m members) Set(ctx context.Context, row member.Membership) error {
	return m.write(ctx, func(s *state) error {
		_, userKnown := s.users.get(row.UserID)
		_, databaseKnown := s.databases.get(row.DatabaseID)
		if !userKnown || !databaseKnown {
			return m.refuse(ports.ErrNoRow)
		}
		key := membershipKey{row.DatabaseID, row.UserID}
		if stored, ok := s.memberships.get(key); ok {
			row.ID, row.CreatedAt = stored.ID, stored.CreatedAt
		}
		s.memberships.put(s.txid, key, row)
		return nil
	})
}

// member adds who somebody is.
func (s *state) member(m member.Membership) member.Member {
	u, _ := s.users.get(m.UserID)
	return member.Member{Membership: m, Email: u.Email, Name: u.Name}
}

// members of a database are the matching ones, the oldest first.
func (s *state) members(db id.DatabaseID, match func(member.Membership) bool) (list []member.Member) {
	for _, m := range s.memberships.having(
		func(m member.Membership) bool { return m.DatabaseID == db && match(m) },
		func(a, b member.Membership) int { return byTime(a.CreatedAt, string(a.ID), b.CreatedAt, string(b.ID)) },
	) {
		list = append(list, s.member(m))
	}
	return list
}

func (m members) find(ctx context.Context, db id.DatabaseID, match func(member.Membership) bool) (member.Member, error) {
	return read(ctx, m.session, func(s *state) (member.Member, error) {
		list := s.members(db, match)
		if len(list) == 0 {
			return member.Member{}, ports.ErrNoRow
		}
		return list[0], nil
	})
}

func (m members) Get(ctx context.Context, db id.DatabaseID, membership id.MembershipID) (member.Member, error) {
	return m.find(ctx, db, func(row member.Membership) bool { return row.ID == membership })
}

func (m members) OfUser(ctx context.Context, db id.DatabaseID, user id.UserID) (member.Member, error) {
	return m.find(ctx, db, func(row member.Membership) bool { return row.UserID == user })
}

func (m members) List(ctx context.Context, db id.DatabaseID) ([]member.Member, error) {
	return read(ctx, m.session, func(s *state) ([]member.Member, error) {
		return s.members(db, func(member.Membership) bool { return true }), nil
	})
}

func (m members) Remove(ctx context.Context, row member.Membership) error {
	return m.write(ctx, func(s *state) error {
		list := s.members(row.DatabaseID, func(stored member.Membership) bool { return stored.ID == row.ID })
		if len(list) == 0 {
			return ports.ErrNoRow
		}
		user := list[0].UserID
		s.memberships.delete(s.txid, membershipKey{row.DatabaseID, user})
		s.bindings.remove(s.txid, func(b, _ binding) bool {
			key, _ := s.keys.get(b.key)
			return b.database == row.DatabaseID && key.UserID == user
		})
		return nil
	})
}
