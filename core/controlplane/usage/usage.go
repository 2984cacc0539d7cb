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
	"github.com/pgherd/pgherd/core/id"
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
func (u *Usage) Period(from, to string, by core.Resolution) (core.Period, error) {
	return core.ParsePeriod(from, to, by, u.base.Clock.Now())
}

// Month reads a month as core.ParseMonth does, by the service's clock.
func (u *Usage) Month(text string) (time.Time, error) {
	return core.ParseMonth(text, u.base.Clock.Now())
}

// Series is what a database used in a period. An hour, day or month in which nobody saw it has no sample.
type Series struct {
	core.Period
	Resolution    core.Resolution
	Samples       []core.Sample
	Sums          core.Sums
	QuotaBytes    int64 // of the database, as they are now
	ConnectionCap int   // 0: none
}

// Of returns what a database used in a period. VALIDATION_ERROR on "to" as core.Period.Check says.
func (u *Usage) Of(ctx context.Context, r access.Reached, in core.Period, by core.Resolution) (Series, error) {
	if err := cmp.Or(r.Permit(account.See), in.Check(by)); err != nil {
		return Series{}, err
	}
	samples, err := ports.Read(ctx, u.base.Store, func(ctx context.Context, tx ports.Tx) ([]core.Sample, error) {
		return tx.Usage().Samples(ctx, []id.DatabaseID{r.Record().ID}, in)
	})
	return Series{
		Period: in, Resolution: by, Samples: by.By(samples), Sums: core.SumOf(samples),
		QuotaBytes: r.Record().StorageQuota(), ConnectionCap: r.Record().ConnectionCap,
	}, err
}

// Bill is what the databases of an account came to in a month, all together and one by one, also those that are gone.
type Bill struct {
	Month time.Time
	Total core.Sums
	Lines []Line
}

// Line is what a database came to, and that by its parts: hours or days, or the month itself.
type Line struct {
	core.Line
	Parts []core.Part
}

// mostDivided bounds a page whose parts are made of the samples of a month: there are some 700 of each database.
const mostDivided = 20

// Account returns a page of what the caller's own account came to in a month, by the IDs of its databases, and the position of
// the last one where there are more. By the hour or the day a page has at most twenty. A key of selected databases has the bill
// of those that are its account's. KEY_SCOPE_DENIED for a CI key.
func (u *Usage) Account(
	ctx context.Context, c access.Caller, month time.Time, by core.Resolution, p ports.Page,
) (b Bill, next *ports.Position, err error) {
	of := ports.UsageFilter{Month: core.MonthOf(month), AccountID: c.Account.ID}
	if err := c.RequireFullAccount(); err != nil {
		if c.Key.Kind != account.AccountKey {
			return b, nil, err
		}
		of.KeyID = c.Key.ID
	}
	if by != core.Monthly && (p.Limit == 0 || p.Limit > mostDivided) {
		p.Limit = mostDivided
	}
	b.Month = of.Month
	b.Lines, next, err = base.List(ctx, u.base.Store, p,
		func(l Line) ports.Position { return ports.Position{At: l.Month, ID: string(l.DatabaseID)} },
		func(ctx context.Context, tx ports.Tx, p ports.Page) (lines []Line, err error) {
			if b.Total, err = tx.Usage().Sum(ctx, of); err != nil {
				return nil, err
			}
			return linesOf(ctx, tx, of, by, p)
		})
	return b, next, err
}

// linesOf reads lines with their parts: those of the month have it from the bill, which outlives the samples.
func linesOf(
	ctx context.Context, tx ports.Tx, of ports.UsageFilter, by core.Resolution, p ports.Page,
) ([]Line, error) {
	read, err := tx.Usage().Lines(ctx, of, p)
	lines, databases := make([]Line, len(read)), make([]id.DatabaseID, len(read))
	for i, l := range read {
		lines[i], databases[i] = Line{l, []core.Part{{At: l.Month, Sums: l.Sums}}}, l.DatabaseID
	}
	if err != nil || by == core.Monthly {
		return lines, err
	}
	samples, err := tx.Usage().Samples(ctx, databases, core.Period{From: of.Month, To: of.Month.AddDate(0, 1, 0)})
	parts := by.Parts(samples)
	for i, l := range lines {
		lines[i].Parts = parts[l.DatabaseID]
	}
	return lines, err
}
