package recovery

import (
	"encoding/json"
	"math/bits"
	"slices"
	"time"
)

// Search finds the second from which on a query's answer fulfils a comparison, between two moments of a window that may have
// gaps. It looks at one moment after another: forward, the server beside the live one goes on from where it stands; back, it has
// to be made anew.
type Search struct {
	From, To time.Time
	Gaps     []Gap
}

// Sight is what a look has seen at a moment.
type Sight struct {
	At time.Time `json:"at"`
	Answer
	// Holds says whether that fulfils the comparison.
	Holds bool `json:"holds"`
}

// Answer is what a query has answered.
type Answer struct {
	Text *string `json:"answer"` // null: NULL, or Missing
	// Missing says which of the things that the query names was not there: PostgreSQL's message. It fulfils no comparison.
	Missing string `json:"missing,omitempty"`
}

// anew is what it costs to go back, in times of what it costs to go on by a second or by a day: the fetch of a copy is that much
// slower than a restart.
const anew = 8

// Next is the next moment to look at, after looks in their order; false: there is none. It begins with both ends. Then a look at
// which the comparison does not hold is cheap, as the next is later, and one at which it does is dear: so each is nearer to the
// beginning of what is left, the dearer, and the worst case of what is left costs the same on both sides.
func (s Search) Next(looks []Sight) (at time.Time, more bool) {
	switch {
	case len(looks) == 0:
		return s.From, true
	case looks[0].Holds:
		return at, false
	case len(looks) == 1:
		return s.To, s.To.After(s.From)
	case !looks[1].Holds:
		return at, false
	}
	last, first := s.between(looks)
	n := int((first.Sub(last) + time.Second - 1) / time.Second)
	if n < 2 {
		return at, false
	}
	return s.outside(last.Add(time.Duration(split(n))*time.Second), last, first)
}

// between is what is left: the last moment at which the comparison did not hold, and the first after it at which it did. The
// looks have begun with both ends.
func (s Search) between(looks []Sight) (last, first time.Time) {
	last, first = s.From, s.To
	for _, l := range looks {
		if l.Holds && l.At.Before(first) {
			first = l.At
		}
		if !l.Holds && l.At.After(last) {
			last = l.At
		}
	}
	return last, first
}

// outside is a moment, or the end of a gap that it is in; false: all that is left is in the gap.
func (s Search) outside(at, last, first time.Time) (time.Time, bool) {
	for _, g := range s.Gaps {
		switch inside := at.After(g.From) && at.Before(g.To); {
		case inside && g.From.After(last):
			return g.From, true
		case inside && g.To.Before(first):
			return g.To, true
		case inside:
			return at, false
		}
	}
	return at, true
}

// Progress is how much of a search is done, in percent: each halving of what is left counts alike.
func (s Search) Progress(looks []Sight) int {
	if len(looks) < 2 {
		return 10 * len(looks)
	}
	last, first := s.between(looks)
	whole, left := bits.Len64(uint64(s.To.Sub(s.From)/time.Second)), bits.Len64(uint64(first.Sub(last)/time.Second))
	return 20 + 79*(whole-left)/max(whole, 1)
}

// split is how many of n seconds, of which one has the change, lie before the next look. reach[c] is of how many the change can
// be found at a cost of c: a look costs 1, and going back from it another anew, unless there is only one second before it.
func split(n int) int {
	reach := []int{1}
	for {
		c := len(reach)
		before := 1
		if c-1 >= anew {
			before = reach[c-1-anew]
		}
		if all := reach[c-1] + before; all < n {
			reach = append(reach, all)
			continue
		}
		return min(before, n-1)
	}
}

// Outcome is what a search has come to.
type Outcome string

// The outcomes of searches.
const (
	Changed Outcome = "changed" // between NotYet and Since the comparison came to hold
	Always  Outcome = "always"  // it held at the beginning
	Never   Outcome = "never"   // it did not hold at the end
)

// SearchResult is the result of a search. Where the answer went to and fro, it is one of the changes.
type SearchResult struct {
	Outcome Outcome    `json:"outcome"`
	NotYet  *time.Time `json:"notYet"` // the last moment seen at which the comparison did not hold
	Since   *time.Time `json:"since"`  // the first after it at which it did
	Looks   []Sight    `json:"looks"`  // all of them, in their order
}

// LookAt is the look at a moment; nil: there was none.
func (r SearchResult) LookAt(at *time.Time) *Sight {
	for i := range r.Looks {
		if at != nil && r.Looks[i].At.Equal(*at) {
			return &r.Looks[i]
		}
	}
	return nil
}

// mostResult bounds a result, in bytes of JSON.
const mostResult = 60 << 10

// Result is what the looks of a search have come to, once there is no Next. The answers of looks that would make it too large are
// left out, but for those on both sides of the change.
func (s Search) Result(looks []Sight) SearchResult {
	r := SearchResult{Outcome: Changed, Looks: slices.Clone(looks)}
	switch {
	case looks[0].Holds:
		r.Outcome, r.Since = Always, &looks[0].At
	case len(looks) < 2 || !looks[1].Holds:
		r.Outcome, r.NotYet = Never, &looks[len(looks)-1].At
	default:
		last, first := s.between(looks)
		r.NotYet, r.Since = &last, &first
	}
	const cut = "(left out)"
	for i := range r.Looks {
		if text, _ := json.Marshal(r); len(text) <= mostResult { // it has nothing that cannot be written
			break
		}
		l := &r.Looks[i]
		beside := r.NotYet != nil && l.At.Equal(*r.NotYet) || r.Since != nil && l.At.Equal(*r.Since)
		if l.Text != nil && !beside {
			l.Text = new(cut)
		}
	}
	return r
}
