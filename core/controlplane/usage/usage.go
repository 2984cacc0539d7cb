// Package usage stores what databases use, hour by hour, and shows it to who sees the database; to an account it shows what that
// comes to.
package usage

import (
	"cmp"
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	core "github.com/pgherd/pgherd/core/usage"
	"github.com/pgherd/pgherd/ports"
)

// Usage shows what databases have used.
type Usage struct{ base *base.Base }

// New makes the use cases, and registers the periodic task that stores what the agents have seen.
func New(p *base.Base) *Usage {
	register(p)
	return &Usage{p}
}

// Period reads a period of two texts as core.ParsePeriod does, by the service's clock.
func (u *Usage) Period(from, to string) (core.Period, error) {
	return core.ParsePeriod(from, to, u.base.Clock.Now())
}

// Month reads a month as core.ParseMonth does, by the service's clock.
func (u *Usage) Month(text string) (time.Time, error) {
	return core.ParseMonth(text, u.base.Clock.Now())
}

// Series is what a database used in a period. An hour in which nobody saw it has no sample.
type Series struct {
	core.Period
	Samples       []core.Sample
	Sums          core.Sums
	QuotaBytes    int64 // of the database, as they are now
	ConnectionCap int   // 0: none
}

// Of returns what a database used in a period, by hour. VALIDATION_ERROR on "to" as core.Period.Check says.
func (u *Usage) Of(ctx context.Context, r access.Reached, in core.Period) (Series, error) {
	if err := cmp.Or(r.Permit(account.See), in.Check()); err != nil {
		return Series{}, err
	}
	samples, err := ports.Read(ctx, u.base.Store, func(ctx context.Context, tx ports.Tx) ([]core.Sample, error) {
		return tx.Usage().Samples(ctx, r.Record().ID, in)
	})
	return Series{
		Period: in, Samples: samples, Sums: core.SumOf(samples), QuotaBytes: r.Record().StorageQuota(),
		ConnectionCap: r.Record().ConnectionCap,
	}, err
}

// Bill is what the databases of an account came to in a month, all together and one by one, also those that are gone.
type Bill struct {
	Month time.Time
	Total core.Sums
	Lines []core.Line
}

// Account returns a page of what the caller's own account came to in a month, by the IDs of its databases, and the position of
// the last one where there are more. KEY_SCOPE_DENIED for a key of selected databases.
func (u *Usage) Account(
	ctx context.Context, c access.Caller, month time.Time, p ports.Page,
) (b Bill, next *ports.Position, err error) {
	if err := c.RequireFullAccount(); err != nil {
		return b, nil, err
	}
	of := ports.UsageFilter{Month: core.MonthOf(month), AccountID: c.Account.ID}
	b.Month = of.Month
	b.Lines, next, err = base.List(ctx, u.base.Store, p,
		func(l core.Line) ports.Position { return ports.Position{At: l.Month, ID: string(l.DatabaseID)} },
		func(ctx context.Context, tx ports.Tx, p ports.Page) ([]core.Line, error) {
			b.Total, err = tx.Usage().Sum(ctx, of)
			if err != nil {
				return nil, err
			}
			return tx.Usage().Lines(ctx, of, p)
		})
	return b, next, err
}
