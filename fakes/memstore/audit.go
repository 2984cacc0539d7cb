package memstore

import (
	"context"
	"errors"
	"maps"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

type auditEntries struct{ session }

func (a auditEntries) Add(ctx context.Context, e audit.Entry) error {
	return a.write(ctx, func(s *state) error {
		if _, taken := s.audit.get(e.ID); taken {
			return a.refuse(errors.New("an audit entry of that ID exists"))
		}
		e.Details = maps.Clone(e.Details)
		s.audit.put(s.txid, e.ID, e)
		return nil
	})
}

func (a auditEntries) List(ctx context.Context, db id.DatabaseID, p ports.Page) ([]audit.Entry, error) {
	return a.having(ctx, p, func(e audit.Entry) bool { return e.DatabaseID == db })
}

func (a auditEntries) OfInstallation(ctx context.Context, p ports.Page) ([]audit.Entry, error) {
	return a.having(ctx, p, func(e audit.Entry) bool { return e.DatabaseID == "" && e.AccountID == "" })
}

func (a auditEntries) OfAccount(ctx context.Context, of id.AccountID, p ports.Page) ([]audit.Entry, error) {
	return a.having(ctx, p, func(e audit.Entry) bool { return e.AccountID == of })
}

func (a auditEntries) having(ctx context.Context, p ports.Page, match func(audit.Entry) bool) ([]audit.Entry, error) {
	return read(ctx, a.session, func(s *state) ([]audit.Entry, error) {
		list := s.audit.having(match, nil)
		position := func(e audit.Entry) ports.Position { return ports.Position{At: e.At, ID: string(e.ID)} }
		return pagedByID(list, p, position, -1)
	})
}
