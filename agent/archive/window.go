package archive

import (
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/recovery"
)

// Backup is a copy of the whole server from which, with the segments after it, everything can be had back that was committed
// after Stopped.
type Backup struct {
	Label   string
	Full    bool
	Started time.Time
	Stopped time.Time
	First   Segment // the first that is needed
	Last    Segment // the last that is needed for it to be of any use
	Size    int64   // of the server then, in bytes
}

// Span is a time of which each moment can be had back, from one backup.
type Span struct {
	From, To time.Time
	Backup   string
	// First and Last are the segments from the backup to the end of the span.
	First, Last Segment
}

// spans are those of the backups, ascending: each reaches to the first segment that is missing. Everything is of one lineage, and
// size is that of a segment.
func spans(backups []Backup, stored []Stored, size int64) []Span {
	var list []Span
	for _, b := range backups {
		at, found := slices.BinarySearchFunc(stored, Stored{Segment: b.First}, bySegment)
		if !found {
			continue
		}
		last := stored[at]
		for _, s := range stored[at+1:] {
			if s.Segment.number(size) != last.Segment.number(size)+1 {
				break
			}
			last = s
		}
		if last.Segment < b.Last {
			continue
		}
		to := last.Ended
		if to.Before(b.Stopped) {
			to = b.Stopped
		}
		list = append(list, Span{From: b.Stopped, To: to, Backup: b.Label, First: b.First, Last: last.Segment})
	}
	slices.SortStableFunc(list, bySpanBegin)
	return list
}

func bySpanBegin(x, y Span) int { return x.From.Compare(y.From) }

// window is what spans come to together, of what is in the life of a database.
func window(list []Span, life Life) (w recovery.Window) {
	for _, s := range list {
		from, to := s.From, s.To
		if from.Before(life.Since) {
			from = life.Since
		}
		if !life.Until.IsZero() && to.After(life.Until) {
			to = life.Until
		}
		switch {
		case to.Before(from):
			continue
		case w.From.IsZero():
			w.From, w.To = from, to
			continue
		case from.After(w.To):
			w.Gaps = append(w.Gaps, recovery.Gap{From: w.To, To: from, Reason: recovery.SegmentsMissing})
		}
		if to.After(w.To) {
			w.To = to
		}
	}
	return w
}

// Life is from when to when a database was on the server. Until is zero while it is.
type Life struct{ Since, Until time.Time }

// spanFor is the one from which a moment is had back soonest: that of the newest backup before it. A moment after all of them, of
// which the archive is still to have the segments, is that of the newest.
func spanFor(list []Span, at time.Time) (found Span, ok bool) {
	for i, s := range list {
		newest := i == len(list)-1
		if !at.Before(s.From) && (newest || !at.After(s.To)) {
			found, ok = s, true
		}
	}
	return found, ok
}
