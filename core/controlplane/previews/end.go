package previews

import (
	"context"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/ports"
)

// Deleting deletes databases. Begin queues a deletion in a transaction that has locked the database; Begun is called when that
// was committed. DATABASE_STATE_CONFLICT: something else is done to the database.
type Deleting interface {
	Begin(ctx context.Context, tx ports.Tx, locked database.Record, by work.Origin) (operation.Operation, error)
	Begun()
}

// Delete ends the lease of a preview and queues its deletion, or leaves the one alone that is queued already. While something
// else is done to the database, the lease has ended and the service deletes the preview afterwards. PREVIEW_CONFLICT: it is being
// recovered.
func (p *Previews) Delete(ctx context.Context, r Reached) (preview.Preview, error) {
	begun := false
	deleted, err := p.update(ctx, r, func(ctx context.Context, tx ports.Tx, s *scene) (err error) {
		begun, err = p.end(ctx, tx, s, r.Caller().Origin(), false)
		if !fault.Has(err, fault.DatabaseStateConflict) {
			return err
		}
		if s.preview, err = s.preview.Release(p.base.Clock.Now()); err != nil {
			return err
		}
		return p.base.Audit(ctx, tx, s.record, r.Caller().Actor(), audit.PreviewReleased, audit.Details{})
	})
	if err == nil && begun {
		p.deleting.Begun()
	}
	return deleted, err
}

// end queues the deletion of a locked preview; begun is false where that was done before. DATABASE_STATE_CONFLICT: something else
// is done to the database; nothing has changed.
func (p *Previews) end(
	ctx context.Context, tx ports.Tx, s *scene, by work.Origin, byService bool,
) (begun bool, err error) {
	ending, begun, err := s.preview.End(p.base.Clock.Now(), byService)
	if err != nil || !begun {
		return false, err
	}
	if _, err := p.deleting.Begin(ctx, tx, s.record, by); err != nil {
		return false, err
	}
	s.preview = ending
	return true, nil
}
