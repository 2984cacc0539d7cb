package recovery

import (
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// Claim is what of an archive is a customer's: what the plan reaches back to, within the life of the database.
type Claim struct {
	Days    int        // how far back the plan of its account reaches; 0: it has no recovery to a point in time
	Made    time.Time  // when the database was made
	Deleted *time.Time // when it was deleted; nil: it is not
}

// Entitled is PLAN_LIMIT where the plan has no recovery to a point in time.
func (c Claim) Entitled() error {
	if c.Days <= 0 {
		return fault.New(fault.PlanLimit, "the plan has no recovery to a point in time")
	}
	return nil
}

// Of is what of an archive's window the claim has. It is in whole seconds, each of which can be had back: its beginning and the
// ends of gaps are rounded up, the others down.
func (c Claim) Of(w Window, now time.Time) Window {
	if c.Days <= 0 || w.Empty() {
		return Window{}
	}
	from, to := c.from(w, now), down(w.To)
	if c.Deleted != nil && c.Deleted.Before(to) {
		to = down(*c.Deleted)
	}
	var gaps []Gap
	for _, g := range rounded(w.Gaps) {
		switch {
		case !g.From.Before(to) || !g.To.After(from): // outside
		case g.From.Before(from):
			from = g.To
		case g.To.After(to):
			to = g.From
		default:
			gaps = append(gaps, g)
		}
	}
	if to.Before(from) {
		return Window{}
	}
	return Window{From: from, To: to, Gaps: gaps}
}

// from is the first whole second of a window that the claim has.
func (c Claim) from(w Window, now time.Time) time.Time {
	return up(slices.MaxFunc([]time.Time{w.From, c.Made, now.AddDate(0, 0, -c.Days)}, time.Time.Compare))
}

// Admits decides about a moment. FEATURE_NOT_AVAILABLE: the server keeps no archive. The other errors are those of Entitled and
// Window.Check; a deleted database has no moment after its deletion.
func (c Claim) Admits(at time.Time, archived bool, w Window, now time.Time) error {
	if err := c.Entitled(); err != nil {
		return err
	}
	if !archived {
		return fault.New(fault.FeatureNotAvailable, "the database server keeps no archive")
	}
	own, end := c.Of(w, now), now
	if c.Deleted != nil {
		end = *c.Deleted
	}
	// What is stored of a young database may end within its first second. What came then is stored when it is asked for.
	if from := c.from(w, now); own.Empty() && !w.Empty() && !from.After(end) {
		own = Window{From: from, To: from}
	}
	if c.Deleted != nil && at.After(*c.Deleted) && !own.Empty() {
		return fault.New(fault.PointNotRecoverable, "the last moment that can be had back is %s, when it was deleted",
			c.Deleted.UTC().Format(time.RFC3339))
	}
	if err := own.Check(at, now); err != nil {
		return err
	}
	return w.Check(at, now) // a gap may be in the second that own ends with
}

// rounded are gaps in whole seconds; those that meet in one are a single gap.
func rounded(list []Gap) (whole []Gap) {
	for _, g := range list {
		g.From, g.To = down(g.From), up(g.To)
		if last := len(whole) - 1; last >= 0 && g.From.Before(whole[last].To) {
			whole[last].To = g.To
			continue
		}
		whole = append(whole, g)
	}
	return whole
}

func down(t time.Time) time.Time { return t.Truncate(time.Second) }

func up(t time.Time) time.Time {
	if d := down(t); d.Before(t) {
		return d.Add(time.Second)
	}
	return t
}
