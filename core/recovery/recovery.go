// Package recovery holds the rules of recovery to a point in time: from which moments a database can be had back, and who may.
package recovery

import (
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// The stages of a job that has a database back as it was, before it is dumped. Clients must not depend on them.
const (
	Fetching  = "fetching"  // what the archive has
	Replaying = "replaying" // what was written since, to the moment
)

// Stages are both, in their order.
var Stages = []string{Fetching, Replaying}

// Shown is what an operation shows while a file is made: one of Stages, or otherwise that it is dumped.
func Shown(stage, dumping string) string {
	if slices.Contains(Stages, stage) {
		return stage
	}
	return dumping
}

// Window is from when to when a database can be had back as it was. The zero Window has no moment.
type Window struct {
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Gaps are what is missing between the two, ascending, without overlaps.
	Gaps []Gap `json:"gaps,omitempty"`
}

// Gap is a part of a window from which nothing can be had back: no moment after From and before To.
type Gap struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Reason Reason    `json:"reason"`
}

// Reason says why there is a gap.
type Reason string

// The reasons of gaps.
const (
	// SegmentsMissing says that the server could not store what was written, or that what was stored is gone.
	SegmentsMissing Reason = "segments_missing"
	// NotArchived says that the server kept no archive then.
	NotArchived Reason = "not_archived"
)

// Values lists them for the API's description.
func (Reason) Values() []Reason { return []Reason{SegmentsMissing, NotArchived} }

// Empty reports whether there is no moment in the window.
func (w Window) Empty() bool { return w.To.Before(w.From) || w.From.IsZero() }

// latest is how much later than the window a moment may be: the server stores what was just written when it is asked for. Clocks
// of machines differ by less.
const latest = time.Minute

// Check refuses a moment that is not in the window: VALIDATION_ERROR for one in the future, POINT_NOT_RECOVERABLE for others. One
// between the end of the window and now is admitted.
func (w Window) Check(at, now time.Time) error {
	if at.After(now.Add(latest)) {
		return fault.Invalid("pointInTime", "is in the future")
	}
	if w.Empty() {
		return fault.New(fault.PointNotRecoverable, "nothing of the database can be had back by a point in time yet")
	}
	if at.Before(w.From) {
		return fault.New(fault.PointNotRecoverable, "the first moment that can be had back is %s", w.From.UTC().Format(time.RFC3339))
	}
	for _, g := range w.Gaps {
		if at.After(g.From) && at.Before(g.To) {
			return fault.New(fault.PointNotRecoverable, "nothing can be had back of the time between %s and %s",
				g.From.UTC().Format(time.RFC3339), g.To.UTC().Format(time.RFC3339))
		}
	}
	return nil
}
