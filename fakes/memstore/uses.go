package memstore

import (
	"cmp"
	"context"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

type uses struct{ session }

// useKey is the identity of a use.
type useKey struct {
	operation id.OperationID
	database  id.DatabaseID
	backup    string
}

func (u uses) Add(ctx context.Context, row operation.Use) error {
	return u.write(ctx, func(s *state) error {
		if _, ok := s.operations.get(row.OperationID); !ok {
			return u.refuse(ports.ErrNoRow)
		}
		s.uses.put(s.txid, useKey{row.OperationID, row.DatabaseID, row.Backup}, row)
		return nil
	})
}

func (u uses) Of(ctx context.Context, db id.DatabaseID) ([]operation.Use, error) {
	return read(ctx, u.session, func(s *state) ([]operation.Use, error) {
		of := func(row operation.Use) bool {
			by, _ := s.operations.get(row.OperationID)
			return row.DatabaseID == db && !by.Status.Final()
		}
		return s.uses.having(of, func(a, b operation.Use) int {
			return cmp.Or(cmp.Compare(a.OperationID, b.OperationID), cmp.Compare(a.Backup, b.Backup))
		}), nil
	})
}
