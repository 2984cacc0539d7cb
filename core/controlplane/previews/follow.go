package previews

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Admits refuses what the routes of databases must not do with a preview: PREVIEW_CONFLICT where it is to be deleted, or
// recovered while its ref has another preview. The database is locked.
func (p *Previews) Admits(ctx context.Context, tx ports.Tx, locked database.Record, on database.Event) error {
	switch {
	case !locked.IsPreview():
		return nil
	case on != database.Recover:
		return rollout.ErrPreview()
	}
	s, err := lock(ctx, tx, locked)
	if err != nil {
		return err
	}
	if _, err := tx.Accounts().LockForQuota(ctx, locked.AccountID); err != nil {
		return err
	}
	live, _, err := tx.Previews().OfRef(ctx, s.preview.NamespaceID, s.preview.Ref)
	if err == nil && live != nil {
		err = fault.New(fault.PreviewConflict, "the ref has another preview: %s", live.DatabaseID)
	}
	return err
}

// RecoveryGate is the gate before the recovery of a preview; empty for every other database.
func (p *Previews) RecoveryGate(_ context.Context, _ ports.Tx, r database.Record) (rollout.Gate, error) {
	if r.IsPreview() {
		return rollout.RecoverPreview, nil
	}
	return "", nil
}

// Follow has the lease of a locked database follow what happens to it. A database that is no preview has none.
func (p *Previews) Follow(ctx context.Context, tx ports.Tx, locked database.Record, e preview.Event) error {
	s, err := lock(ctx, tx, locked)
	if errors.Is(err, ports.ErrNoRow) {
		return nil
	}
	if err != nil {
		return err
	}
	followed, err := s.preview.Follow(e, p.base.Clock.Now())
	if err != nil {
		return err
	}
	return tx.Previews().Save(ctx, followed)
}
