package memstore

import (
	"bytes"
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var errKeyIDTaken = errors.New("a key of that ID exists")

type keys struct{ session }

func (k keys) Add(ctx context.Context, key account.Key, databases []id.DatabaseID) error {
	return k.write(ctx, func(s *state) error {
		if _, taken := s.keys.get(key.ID); taken {
			return k.refuse(errKeyIDTaken)
		}
		if !s.mayHave(key, databases) {
			return k.refuse(ports.ErrNoRow)
		}
		key.Hash = bytes.Clone(key.Hash)
		s.keys.put(s.txid, key.ID, key)
		for _, db := range databases {
			s.bindings.put(s.txid, binding{key.ID, db}, binding{key.ID, db})
		}
		return nil
	})
}

// mayHave reports whether everything that a key refers to exists.
func (s *state) mayHave(key account.Key, databases []id.DatabaseID) bool {
	_, accountKnown := s.accounts.get(key.AccountID)
	_, userKnown := s.users.get(key.UserID)
	_, namespaceKnown := s.namespaces.get(key.NamespaceID)
	known := accountKnown && userKnown && (namespaceKnown || key.NamespaceID == "")
	for _, db := range databases {
		_, databaseKnown := s.databases.get(db)
		known = known && databaseKnown
	}
	return known
}

func (k keys) Get(ctx context.Context, key id.KeyID) (account.Key, error) {
	return read(ctx, k.session, func(s *state) (account.Key, error) {
		row, err := found(s.keys.get(key))
		return k.store.withLastUse(row), err
	})
}

// Lock locks nothing more: updates exclude each other.
func (k keys) Lock(ctx context.Context, key id.KeyID) (account.Key, error) { return k.Get(ctx, key) }

func (k keys) List(ctx context.Context, of id.AccountID) ([]account.Key, error) {
	return read(ctx, k.session, func(s *state) ([]account.Key, error) {
		list := s.keys.having(func(key account.Key) bool { return key.AccountID == of }, newestKey)
		return each(list, k.store.withLastUse), nil
	})
}

func newestKey(a, b account.Key) int {
	return -byTime(a.CreatedAt, string(a.ID), b.CreatedAt, string(b.ID))
}

func (k keys) Replace(ctx context.Context, old id.KeyID, key account.Key) error {
	return k.write(ctx, func(s *state) error {
		stored, ok := s.keys.get(old)
		if !ok {
			return ports.ErrNoRow
		}
		if _, taken := s.keys.get(key.ID); taken && key.ID != old {
			return k.refuse(errKeyIDTaken)
		}
		stored = k.store.withLastUse(stored)
		stored.ID, stored.Hash = key.ID, bytes.Clone(key.Hash)
		s.keys.delete(s.txid, old)
		s.keys.put(s.txid, key.ID, stored)
		for _, b := range s.bindings.having(func(b binding) bool { return b.key == old }, byDatabase) {
			s.bindings.put(s.txid, binding{key.ID, b.database}, binding{key.ID, b.database})
		}
		s.bindings.remove(s.txid, func(b, _ binding) bool { return b.key == old && b.key != key.ID })
		for _, b := range s.tombstoneKeys.having(func(b binding) bool { return b.key == old }, byDatabase) {
			s.tombstoneKeys.delete(s.txid, b)
			s.tombstoneKeys.put(s.txid, binding{key.ID, b.database}, binding{key.ID, b.database})
		}
		return nil
	})
}

func byDatabase(a, b binding) int { return bytes.Compare([]byte(a.database), []byte(b.database)) }

func (k keys) Bind(ctx context.Context, key account.Key) error {
	return k.change(ctx, key.ID, func(stored *account.Key) { stored.ExpiresAt, stored.Networks = key.ExpiresAt, key.Networks })
}

func (k keys) Revoke(ctx context.Context, key account.Key) error {
	return k.change(ctx, key.ID, func(stored *account.Key) { stored.RevokedAt = key.RevokedAt })
}

func (k keys) change(ctx context.Context, key id.KeyID, change func(*account.Key)) error {
	return k.write(ctx, func(s *state) error {
		stored, ok := s.keys.get(key)
		if !ok {
			return ports.ErrNoRow
		}
		change(&stored)
		s.keys.put(s.txid, key, stored)
		return nil
	})
}
