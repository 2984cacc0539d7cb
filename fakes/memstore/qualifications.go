package memstore

import (
	"cmp"
	"context"

	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

type qualificationKey struct {
	server    id.ServerID
	extension extension.Name
}

type qualifications struct{ session }

func (q qualifications) Put(ctx context.Context, row extension.Qualification) error {
	return q.write(ctx, func(s *state) error {
		if _, ok := s.servers.get(row.ServerID); !ok {
			return q.refuse(ports.ErrNoRow)
		}
		s.qualifications.put(s.txid, qualificationKey{row.ServerID, row.Extension}, row)
		return nil
	})
}

func (q qualifications) Of(ctx context.Context, server id.ServerID) ([]extension.Qualification, error) {
	return read(ctx, q.session, func(s *state) ([]extension.Qualification, error) {
		return s.qualifications.having(func(row extension.Qualification) bool { return row.ServerID == server },
			func(a, b extension.Qualification) int { return cmp.Compare(a.Extension, b.Extension) }), nil
	})
}
