package previews

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/ports"
)

// Request asks for the preview of a ref.
type Request struct {
	Ref             string
	TTLHours        *int               // nil: preview.DefaultHours
	ScheduledBackup *database.Schedule // nil: none
}

// Opened is a preview, and how to connect to it. Fresh is true for the request that made it.
type Opened struct {
	Preview preview.Preview
	Made    provision.Made
	Fresh   bool
}

// Open makes the preview of a ref, or returns the one that the ref has, with its password as long as that is the one that it was
// made with. It returns when a log-in through the pooler has been proven; what a crash has cut off goes on in the background, and
// the same request waits for it.
//
// KEY_SCOPE_DENIED: no preview CI key. VALIDATION_ERROR. PREVIEW_CONFLICT: the ref has a preview that was made with other
// choices, or one that is about to be deleted. PLAN_LIMIT: the account may have no more databases. AGENT_ERROR: the server failed
// to make it, and nothing is left; or it has not answered, and creation goes on.
func (p *Previews) Open(ctx context.Context, c access.Caller, r Request) (o Opened, err error) {
	if err := c.RequirePreviewKey(); err != nil {
		return o, err
	}
	choices, err := r.check()
	if err != nil {
		return o, err
	}
	namespace, use := c.Key.NamespaceID, 0
	o.Made, o.Fresh, err = p.make(ctx, c, provision.Making{
		Lasting: true, // a pipeline's later runs know the preview by its ref alone
		Record: database.Record{
			DisplayName: preview.DisplayName(r.Ref), RoleModel: database.Managed, Schedule: choices.ScheduledBackup,
			NamespaceID: namespace,
		},
		Claim: func(ctx context.Context, tx ports.Tx, d *provision.Draft) (known id.DatabaseID, err error) {
			live, next, err := p.claim(ctx, tx, c, namespace, r.Ref, choices)
			use = next
			d.Name(preview.Name(namespace, r.Ref, use))
			return live.DatabaseID, err
		},
		Also: func(ctx context.Context, tx ports.Tx, record database.Record) error {
			return tx.Previews().Add(ctx, preview.New(record.ID, namespace, r.Ref, use, choices, record.CreatedAt))
		},
	})
	switch {
	case fault.Has(err, fault.DatabaseStateConflict): // it was deleted since the ref was looked up
		return Opened{}, fault.Wrap(err, fault.PreviewConflict, "the preview of the ref was deleted meanwhile; ask again")
	case err != nil:
		return Opened{}, err
	}
	found, err := p.Reach(ctx, c, o.Made.Record.ID)
	if fault.Has(err, fault.PreviewNotFound) { // it is the namespace's: the key was revoked meanwhile
		err = account.ErrUnauthorized()
	}
	o.Preview = found.preview.At(p.base.Clock.Now())
	return o, err
}

func (r Request) check() (c preview.Choices, err error) {
	if c.ScheduledBackup, err = database.Chosen(r.ScheduledBackup, database.NoSchedule, database.ParseSchedule); err != nil {
		return c, err
	}
	if err := preview.CheckRef(r.Ref); err != nil {
		return c, err
	}
	c.TTLHours = preview.DefaultHours
	if r.TTLHours != nil {
		c.TTLHours = *r.TTLHours
	}
	return c, preview.CheckHours(c.TTLHours)
}

// claim finds the preview that a ref has in a namespace, as it is now, or the number of a new one. The lock of the account makes
// others wait that ask for the same ref.
func (p *Previews) claim(
	ctx context.Context, tx ports.Tx, c access.Caller, of id.NamespaceID, ref string, choices preview.Choices,
) (live preview.Preview, use int, err error) {
	if _, err := tx.Accounts().LockForQuota(ctx, c.Account.ID); err != nil {
		return live, 0, err
	}
	if c.Key.Expired(p.base.Clock.Now()) {
		return live, 0, account.ErrUnauthorized()
	}
	found, used, err := tx.Previews().OfRef(ctx, of, ref)
	if err != nil || found == nil {
		return live, used + 1, err
	}
	live = found.At(p.base.Clock.Now())
	return live, 0, live.Replay(choices)
}
