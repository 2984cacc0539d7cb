package memstore

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

type namespaces struct{ session }

func (n namespaces) Add(ctx context.Context, row account.Namespace) error {
	return n.write(ctx, func(s *state) error {
		if _, ok := s.accounts.get(row.AccountID); !ok {
			return n.refuse(ports.ErrNoRow)
		}
		same := func(other account.Namespace) bool { return other.AccountID == row.AccountID && other.Name == row.Name }
		if s.namespaces.any(same) {
			return n.refuse(fault.Invalid("name", "is in use"))
		}
		s.namespaces.put(s.txid, row.ID, row)
		return nil
	})
}

func (n namespaces) Get(ctx context.Context, of id.NamespaceID) (account.Namespace, error) {
	return read(ctx, n.session, func(s *state) (account.Namespace, error) { return found(s.namespaces.get(of)) })
}

func (n namespaces) Lock(ctx context.Context, of id.NamespaceID) (account.Namespace, error) {
	return write(ctx, n.session, func(s *state) (account.Namespace, error) { return found(s.namespaces.get(of)) })
}

func (n namespaces) List(ctx context.Context, of id.AccountID) ([]account.Namespace, error) {
	return read(ctx, n.session, func(s *state) ([]account.Namespace, error) {
		return s.namespaces.having(func(row account.Namespace) bool { return row.AccountID == of }, func(a, b account.Namespace) int {
			return byTime(a.CreatedAt, string(a.ID), b.CreatedAt, string(b.ID))
		}), nil
	})
}

func (n namespaces) Revoke(ctx context.Context, row account.Namespace) error {
	return n.write(ctx, func(s *state) error {
		stored, ok := s.namespaces.get(row.ID)
		if !ok {
			return ports.ErrNoRow
		}
		stored.RevokedAt = row.RevokedAt
		s.namespaces.put(s.txid, row.ID, stored)
		s.trusts.remove(s.txid, func(_ id.TrustID, t citoken.Trust) bool { return t.NamespaceID == row.ID })
		s.revokeKeys(row.RevokedAt, func(k account.Key) bool { return k.NamespaceID == row.ID })
		return nil
	})
}

// revokeKeys revokes those of the matching keys that are not revoked yet.
func (s *state) revokeKeys(at *time.Time, match func(account.Key) bool) {
	for _, k := range s.keys.having(func(k account.Key) bool { return k.RevokedAt == nil && match(k) }, nil) {
		k.RevokedAt = at
		s.keys.put(s.txid, k.ID, k)
	}
}

func (n namespaces) Keys(ctx context.Context, of id.NamespaceID) ([]account.Key, error) {
	return read(ctx, n.session, func(s *state) ([]account.Key, error) {
		list := s.keys.having(func(k account.Key) bool { return k.NamespaceID == of }, newestKey)
		return each(list, n.store.withLastUse), nil
	})
}

func (n namespaces) Live(ctx context.Context, of id.NamespaceID, now time.Time) (citoken.Live, error) {
	return read(ctx, n.session, func(s *state) (live citoken.Live, err error) {
		works := func(k account.Key) bool {
			return k.NamespaceID == of && k.Exchanged() && k.RevokedAt == nil && !k.Expired(now)
		}
		for _, k := range s.keys.having(works, nil) {
			if live.Number++; live.FirstEnd == nil || k.ExpiresAt.Before(*live.FirstEnd) {
				live.FirstEnd = k.ExpiresAt
			}
		}
		return live, nil
	})
}

type trusts struct{ session }

func (t trusts) Add(ctx context.Context, row citoken.Trust) error {
	return t.write(ctx, func(s *state) error {
		if _, ok := s.namespaces.get(row.NamespaceID); !ok {
			return t.refuse(ports.ErrNoRow)
		}
		if s.trusts.any(func(other citoken.Trust) bool {
			other.ID, other.CreatedAt = row.ID, row.CreatedAt
			return other == row
		}) {
			return t.refuse(citoken.ErrTrusted())
		}
		s.trusts.put(s.txid, row.ID, row)
		return nil
	})
}

func (t trusts) Get(ctx context.Context, trust id.TrustID) (citoken.Trust, error) {
	return read(ctx, t.session, func(s *state) (citoken.Trust, error) { return found(s.trusts.get(trust)) })
}

func (t trusts) List(ctx context.Context, of id.NamespaceID) ([]citoken.Trust, error) {
	return read(ctx, t.session, func(s *state) ([]citoken.Trust, error) {
		return s.trusts.having(func(row citoken.Trust) bool { return row.NamespaceID == of }, func(a, b citoken.Trust) int {
			return byTime(a.CreatedAt, string(a.ID), b.CreatedAt, string(b.ID))
		}), nil
	})
}

func (t trusts) Remove(ctx context.Context, trust id.TrustID, now time.Time) error {
	return t.write(ctx, func(s *state) error {
		if _, ok := s.trusts.get(trust); !ok {
			return ports.ErrNoRow
		}
		s.trusts.delete(s.txid, trust)
		s.revokeKeys(&now, func(k account.Key) bool { return k.TrustID == trust })
		return nil
	})
}

func (t trusts) Spend(ctx context.Context, token citoken.Spent) (bool, error) {
	return write(ctx, t.session, func(s *state) (bool, error) {
		if _, spent := s.spentTokens.get(string(token.Mark)); spent {
			return false, nil
		}
		s.spentTokens.put(s.txid, string(token.Mark), token.Until)
		return true, nil
	})
}

func (t trusts) Sweep(ctx context.Context, tokens, keys time.Time, limit int) (int, error) {
	return write(ctx, t.session, func(s *state) (int, error) {
		forgotten := 0
		s.spentTokens.remove(s.txid, func(_ string, until time.Time) bool {
			over := forgotten < limit && until.Before(tokens)
			if over {
				forgotten++
			}
			return over
		})
		ended := s.keys.having(func(k account.Key) bool { return k.Exchanged() && k.ExpiresAt.Before(keys) },
			func(a, b account.Key) int { return a.ExpiresAt.Compare(*b.ExpiresAt) })
		ended = first(ended, limit)
		for _, k := range ended {
			s.keys.delete(s.txid, k.ID)
		}
		return forgotten + len(ended), nil
	})
}
