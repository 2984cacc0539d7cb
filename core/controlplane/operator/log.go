package operator

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/operations"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Entries are entries of the log with those who acted.
type Entries = []base.By[audit.Entry]

// Audit lists the activity of any database, newest first; of one that is purged, too.
func (o *Operator) Audit(ctx context.Context, db id.DatabaseID, p ports.Page) (Entries, error) {
	return ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (Entries, error) {
		return operations.Log(ctx, tx, db, p)
	})
}

// InstallationAudit lists what was done to the installation as a whole, newest first.
func (o *Operator) InstallationAudit(ctx context.Context, p ports.Page) (Entries, error) {
	return ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (Entries, error) {
		list, err := tx.Audit().OfInstallation(ctx, p)
		return withActors(ctx, tx, list, err)
	})
}

// AccountAudit lists what was done to an account and to its databases, newest first. VALIDATION_ERROR on "account".
func (o *Operator) AccountAudit(ctx context.Context, a id.AccountID, p ports.Page) (Entries, error) {
	return ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (Entries, error) {
		if _, err := tx.Accounts().Get(ctx, a); err != nil {
			return nil, notFound(err, "account")
		}
		list, err := tx.Audit().OfAccount(ctx, a, p)
		return withActors(ctx, tx, list, err)
	})
}

func withActors(ctx context.Context, tx ports.Tx, list []audit.Entry, err error) (Entries, error) {
	if err != nil {
		return nil, err
	}
	return base.WithPersons(ctx, tx, list, func(e audit.Entry) id.UserID { return e.UserID })
}

// Period bounds an export of the log.
type Period struct {
	Since time.Time // the zero time: from the beginning
	Until time.Time // exclusive; the zero time: up to now
	Limit int       // most entries, of the newest; 0: all
}

// entriesAtOnce bounds how much of a log is in memory.
const entriesAtOnce = 1000

// EachPage calls visit with the entries of a list in the period, newest first, a page at a time. What is added meanwhile is left
// out. An error of visit ends it.
func EachPage(
	ctx context.Context, list func(context.Context, ports.Page) (Entries, error), in Period, visit func(Entries) error,
) error {
	p := ports.Page{Limit: in.Limit}
	if !in.Until.IsZero() {
		p.After = &ports.Position{At: in.Until, ID: firstID}
	}
	position := func(e base.By[audit.Entry]) ports.Position {
		return ports.Position{At: e.What.At, ID: string(e.What.ID)}
	}
	return inPages(p, entriesAtOnce, position, func(p ports.Page) (Entries, error) {
		page, err := list(ctx, p)
		return since(page, in.Since), err
	}, visit)
}

// since are the entries, which come newest first, that are not older.
func since(page Entries, at time.Time) Entries {
	for i, e := range page {
		if e.What.At.Before(at) {
			return page[:i]
		}
	}
	return page
}

// firstID sorts before every ID.
const firstID = "00000000-0000-0000-0000-000000000000"
