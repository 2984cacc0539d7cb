package previews

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Copying makes databases that begin with what others held at a moment: Clones.Copy, once Moments.Admit has admitted the moment.
type Copying struct {
	Copy   func(ctx context.Context, r access.Reached, m provision.Making, at time.Time) (provision.Copied, error)
	Admits func(ctx context.Context, r access.Reached, at time.Time) error
}

// CopyRequest asks for the preview of a ref with what a database held at a moment.
type CopyRequest struct {
	Request
	NamespaceID id.NamespaceID
	SourceID    id.DatabaseID
	At          time.Time
}

// Copied is such a preview. While it is being made, nobody can connect, and the operation of its source says how far it is.
type Copied struct {
	Preview preview.Preview
	provision.Copied
}

// Copy makes the preview of a ref with what a database of the account held at a moment, or returns the one that the ref has. It
// is for those who have a right to both, and only where the operator lets previews of the account have such data: the pipeline,
// whose key renews and ends the preview, never gets its password.
//
// KEY_SCOPE_DENIED: neither a person nor a full-account key. FEATURE_NOT_AVAILABLE: the account may not, or its source may not be
// cloned. VALIDATION_ERROR: a field is wrong, or the account has no such namespace. DATABASE_NOT_FOUND: the source is missing, of
// another account or deleted. PREVIEW_CONFLICT: as for Open, or the source is a preview. The other errors are those of
// Clones.Start.
func (p *Previews) Copy(ctx context.Context, c access.Caller, r CopyRequest) (made Copied, err error) {
	if err := c.RequireFullAccount(); err != nil {
		return made, err
	}
	if err := c.Account.AdmitPreviewCopy(); err != nil {
		return made, err
	}
	choices, err := r.check()
	if err != nil {
		return made, err
	}
	choices.SourceID, choices.SourceAt = r.SourceID, &r.At
	source, err := p.source(ctx, c, r.SourceID)
	if err != nil {
		return made, err
	}
	if err := p.asOf(ctx, c, source, r); err != nil {
		return made, err
	}
	use := 0
	made.Copied, err = p.copying.Copy(ctx, source, provision.Making{
		Record: database.Record{
			DisplayName: preview.DisplayName(r.Ref), Schedule: choices.ScheduledBackup, NamespaceID: r.NamespaceID,
		},
		Claim: func(ctx context.Context, tx ports.Tx, d *provision.Draft) (known id.DatabaseID, err error) {
			made.Preview, use, err = p.claim(ctx, tx, c, r.NamespaceID, r.Ref, choices)
			d.Name(preview.Name(r.NamespaceID, r.Ref, use))
			return made.Preview.DatabaseID, err
		},
		Also: func(ctx context.Context, tx ports.Tx, record database.Record) error {
			made.Preview = preview.New(record.ID, r.NamespaceID, r.Ref, use, choices, record.CreatedAt)
			return tx.Previews().Add(ctx, made.Preview)
		},
	}, r.At)
	return made, err
}

// source reaches the database whose data is wanted, as for a clone.
func (p *Previews) source(ctx context.Context, c access.Caller, db id.DatabaseID) (access.Reached, error) {
	found, err := access.Find(ctx, p.base.Store, c, []rollout.Gate{rollout.Clone}, base.ErrDatabaseNotFound(),
		func(ctx context.Context, tx ports.Tx, by access.Passage) (access.Reached, error) {
			return by.Reach(ctx, tx, db)
		})
	if err != nil {
		return found, err
	}
	return found, found.Permit(account.Own, rollout.Clone)
}

// asOf decides about the moment, unless the ref has a preview already, and that the account has the namespace.
func (p *Previews) asOf(ctx context.Context, c access.Caller, source access.Reached, r CopyRequest) error {
	known := false
	err := p.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		n, err := tx.Namespaces().Get(ctx, r.NamespaceID)
		if err == nil && (n.AccountID != c.Account.ID || n.RevokedAt != nil) {
			err = ports.ErrNoRow
		}
		if err != nil {
			return base.NotFound(err, fault.Invalid("namespaceId", "is no CI namespace of the account"))
		}
		live, _, err := tx.Previews().OfRef(ctx, r.NamespaceID, r.Ref)
		known = live != nil
		return err
	})
	if err != nil || known {
		return err
	}
	return p.copying.Admits(ctx, source, r.At)
}
