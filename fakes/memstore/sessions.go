package memstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

var errTokenTwice = errors.New("another session has the token")

type sessions struct{ session }

func (p sessions) put(s *state, row person.Session) error {
	same := func(other person.Session) bool {
		return other.ID != row.ID && bytes.Equal(other.TokenHash, row.TokenHash)
	}
	if s.sessions.any(same) {
		return p.refuse(errTokenTwice)
	}
	row.TokenHash = bytes.Clone(row.TokenHash)
	s.sessions.put(s.txid, row.ID, row)
	return nil
}

func (p sessions) Add(ctx context.Context, row person.Session) error {
	return p.write(ctx, func(s *state) error {
		if _, known := s.users.get(row.UserID); !known {
			return p.refuse(ports.ErrNoRow)
		}
		return p.put(s, row)
	})
}

func (p sessions) ByToken(ctx context.Context, hash token.Hash) (ports.SessionEntry, error) {
	return read(ctx, p.session, func(s *state) (ports.SessionEntry, error) {
		for _, row := range s.sessions.byKey {
			if !hash.Equals(row.TokenHash) {
				continue
			}
			user, _ := s.users.get(row.UserID)
			user.PasswordHash, user.LoggedInAt = "", nil
			owned, err := s.owned(row.UserID)
			_, named := s.operators.get(user.ID)
			return ports.SessionEntry{
				Session: row, User: user, Account: owned, Maintenance: s.maintenance, Operator: named, Passkey: s.keysOf(user.ID) > 0,
			}, err
		}
		return ports.SessionEntry{}, ports.ErrNoRow
	})
}

func (p sessions) Get(ctx context.Context, of id.SessionID) (person.Session, error) {
	return read(ctx, p.session, func(s *state) (person.Session, error) { return found(s.sessions.get(of)) })
}

func (p sessions) Lock(ctx context.Context, of id.SessionID) (person.Session, error) {
	return write(ctx, p.session, func(s *state) (person.Session, error) { return found(s.sessions.get(of)) })
}

func (p sessions) Of(ctx context.Context, user id.UserID) ([]person.Session, error) {
	return read(ctx, p.session, func(s *state) ([]person.Session, error) {
		return s.sessions.having(
			func(row person.Session) bool { return row.UserID == user && row.Status != person.Ended },
			func(a, b person.Session) int { return byTime(b.UsedAt, string(b.ID), a.UsedAt, string(a.ID)) }), nil
	})
}

func (p sessions) Save(ctx context.Context, row person.Session) error {
	return p.write(ctx, func(s *state) error {
		stored, ok := s.sessions.get(row.ID)
		if !ok {
			return ports.ErrNoRow
		}
		row.UserID, row.CreatedAt, row.Client, row.Agent = stored.UserID, stored.CreatedAt, stored.Client, stored.Agent
		return p.put(s, row)
	})
}

func (p sessions) Touch(ctx context.Context, of id.SessionID, at time.Time) error {
	return p.write(ctx, func(s *state) error {
		if row, ok := s.sessions.get(of); ok && row.Status == person.Open && row.UsedAt.Before(at) {
			row.UsedAt = at
			s.sessions.put(s.txid, of, row)
		}
		return nil
	})
}

func (p sessions) EndAll(ctx context.Context, user id.UserID, but id.SessionID, now time.Time) error {
	return p.write(ctx, func(s *state) error {
		for _, row := range s.sessions.having(every, nil) {
			if row.UserID == user && row.ID != but && row.Status != person.Ended {
				row.Status, row.EndedAt = person.Ended, &now
				s.sessions.put(s.txid, row.ID, row)
			}
		}
		return nil
	})
}

func (p sessions) Forget(ctx context.Context, before time.Time, limit int) error {
	return p.write(ctx, func(s *state) error {
		over := func(row person.Session) bool {
			return row.EndedAt != nil && row.EndedAt.Before(before) || row.CreatedAt.Before(before.Add(-person.Life))
		}
		for _, row := range first(s.sessions.having(over, func(a, b person.Session) int { return cmp.Compare(a.ID, b.ID) }), limit) {
			s.sessions.delete(s.txid, row.ID)
		}
		return nil
	})
}

// recoveryCode is the key of a code of a person.
type recoveryCode struct {
	user id.UserID
	hash token.Hash
}

type credentials struct{ session }

// ofUser runs fn where there is such a user.
func (c credentials) ofUser(ctx context.Context, user id.UserID, fn func(*state, account.User)) error {
	return c.write(ctx, func(s *state) error {
		u, known := s.users.get(user)
		if !known {
			return c.refuse(ports.ErrNoRow)
		}
		fn(s, u)
		return nil
	})
}

func (c credentials) Lock(ctx context.Context, user id.UserID) (account.User, error) {
	return write(ctx, c.session, func(s *state) (account.User, error) { return found(s.users.get(user)) })
}

// change stores a change of a person.
func (c credentials) change(ctx context.Context, user id.UserID, change func(*account.User)) error {
	return c.write(ctx, func(s *state) error {
		u, known := s.users.get(user)
		if !known {
			return ports.ErrNoRow
		}
		change(&u)
		s.users.put(s.txid, user, u)
		return nil
	})
}

func (c credentials) SetPassword(ctx context.Context, user id.UserID, hash string) error {
	return c.change(ctx, user, func(u *account.User) { u.PasswordHash = hash })
}

func (c credentials) SetLoggedIn(ctx context.Context, user id.UserID, at time.Time) error {
	return c.change(ctx, user, func(u *account.User) { u.LoggedInAt = &at })
}

func (c credentials) SetReset(ctx context.Context, r person.Reset) error {
	return c.ofUser(ctx, r.UserID, func(s *state, _ account.User) {
		r.TokenHash = bytes.Clone(r.TokenHash)
		s.resets.put(s.txid, r.UserID, r)
	})
}

func (c credentials) ResetByToken(ctx context.Context, hash token.Hash) (person.Reset, error) {
	return read(ctx, c.session, func(s *state) (person.Reset, error) {
		for _, r := range s.resets.byKey {
			if hash.Equals(r.TokenHash) {
				return r, nil
			}
		}
		return person.Reset{}, ports.ErrNoRow
	})
}

func (c credentials) RemoveReset(ctx context.Context, user id.UserID) error {
	return c.write(ctx, func(s *state) error {
		s.resets.delete(s.txid, user)
		return nil
	})
}

func (c credentials) Factor(ctx context.Context, user id.UserID) (person.Factor, error) {
	return read(ctx, c.session, func(s *state) (person.Factor, error) { return found(s.factors.get(user)) })
}

func (c credentials) SetFactor(ctx context.Context, f person.Factor) error {
	return c.ofUser(ctx, f.UserID, func(s *state, _ account.User) {
		f.SealedSecret = bytes.Clone(f.SealedSecret)
		s.factors.put(s.txid, f.UserID, f)
	})
}

func (c credentials) SaveFactor(ctx context.Context, f person.Factor) error {
	return c.write(ctx, func(s *state) error {
		stored, ok := s.factors.get(f.UserID)
		if !ok {
			return ports.ErrNoRow
		}
		stored.LastStep, stored.ConfirmedAt = f.LastStep, f.ConfirmedAt
		s.factors.put(s.txid, f.UserID, stored)
		return nil
	})
}

// forget deletes the recovery codes of a person.
func (c credentials) forget(s *state, user id.UserID) {
	s.recoveryCodes.remove(s.txid, func(code, _ recoveryCode) bool { return code.user == user })
}

func (c credentials) RemoveFactor(ctx context.Context, user id.UserID) error {
	return c.write(ctx, func(s *state) error {
		s.factors.delete(s.txid, user)
		c.forget(s, user)
		return nil
	})
}

func (c credentials) SetRecovery(ctx context.Context, user id.UserID, codes []token.Hash) error {
	return c.ofUser(ctx, user, func(s *state, _ account.User) {
		c.forget(s, user)
		for _, hash := range codes {
			s.recoveryCodes.put(s.txid, recoveryCode{user, hash}, recoveryCode{user, hash})
		}
	})
}

func (c credentials) Recovery(ctx context.Context, user id.UserID) (int, error) {
	return read(ctx, c.session, func(s *state) (int, error) {
		return len(s.recoveryCodes.having(func(code recoveryCode) bool { return code.user == user }, nil)), nil
	})
}

func (c credentials) UseRecovery(ctx context.Context, user id.UserID, code token.Hash) error {
	return c.write(ctx, func(s *state) error {
		key := recoveryCode{user, code}
		if _, known := s.recoveryCodes.get(key); !known {
			return ports.ErrNoRow
		}
		s.recoveryCodes.delete(s.txid, key)
		return nil
	})
}
