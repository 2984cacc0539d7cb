package memstore

import (
	"bytes"
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

type backupKeys struct{ session }

func (k backupKeys) Add(ctx context.Context, key backup.Key) error {
	return k.write(ctx, func(s *state) error {
		if _, ok := s.databases.get(key.DatabaseID); !ok {
			return k.refuse(ports.ErrNoRow)
		}
		if _, taken := s.backupKeys.get(key.DatabaseID); taken {
			return k.refuse(errors.New("the database has a key already"))
		}
		s.backupKeys.put(s.txid, key.DatabaseID, ownKey(key))
		return nil
	})
}

func (k backupKeys) Get(ctx context.Context, db id.DatabaseID) (backup.Key, error) {
	return read(ctx, k.session, func(s *state) (backup.Key, error) {
		stored, ok := s.backupKeys.get(db)
		return found(ownKey(stored), ok)
	})
}

// ownKey returns a key whose secret its holder may change.
func ownKey(k backup.Key) backup.Key {
	k.Sealed = bytes.Clone(k.Sealed)
	return k
}
