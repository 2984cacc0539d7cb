// Package model is what a soak knows of the service without asking it: what each answer has promised, and what may be where an
// answer was lost. It is pure, and each of its parts can be used by several goroutines.
package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Fact is something that can be read of the service, such as whether a database is stopped.
type Fact string

// Outcome is what is known of a request.
type Outcome string

// Outcomes. A request whose answer was lost may be carried out at any time until all is quiet, also after others.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused"
	Unknown Outcome = "unknown"
)

// Facts are the values that each fact may have.
type Facts struct {
	mu sync.Mutex
	of map[Fact]*possible
}

// possible are the values that a fact may have, each with the step that has asked for it.
type possible struct {
	now  map[string]int
	late map[string]int // of requests whose answers were lost
	open bool           // nobody knows what it was before
}

// NewFacts knows nothing.
func NewFacts() *Facts { return &Facts{of: map[Fact]*possible{}} }

// Note takes the outcome of a step's request that a fact shall have a value.
func (f *Facts) Note(fact Fact, value string, step int, outcome Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of[fact]
	if p == nil {
		p = &possible{now: map[string]int{}, late: map[string]int{}, open: true}
		f.of[fact] = p
	}
	switch outcome {
	case Done:
		p.now, p.open = maps.Clone(p.late), false
		p.now[value] = step
	case Unknown:
		p.now[value], p.late[value] = step, step
	case Refused:
	}
}

// Forget forgets a fact, and all those below it: those whose names begin with its own and a slash. Nobody can say any more what
// they are, or shall be.
func (f *Facts) Forget(fact Fact) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.of, func(other Fact, _ *possible) bool {
		return other == fact || strings.HasPrefix(string(other), string(fact)+"/")
	})
}

// Settle takes what was read of a fact while all was quiet. It is an error where that cannot be. From then on the fact has that
// value.
func (f *Facts) Settle(fact Fact, read string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of[fact]
	if p == nil {
		return nil // nobody has asked for anything
	}
	step, can := p.now[read]
	said, open := p.said(), p.open
	p.now, p.late, p.open = map[string]int{read: step}, map[string]int{}, false
	if !can && !open {
		return fmt.Errorf("%s is %q; it can only be %s", fact, read, said)
	}
	return nil
}

// said are the values with the steps that asked for them.
func (p *possible) said() string {
	var values []string
	for _, v := range slices.Sorted(maps.Keys(p.now)) {
		values = append(values, fmt.Sprintf("%q since step %d", v, p.now[v]))
	}
	return strings.Join(values, " or ")
}

// May reports whether a fact may have a value. Of what nobody has asked for, it may have any.
func (f *Facts) May(fact Fact, value string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of[fact]
	if p == nil {
		return true
	}
	_, may := p.now[value]
	return may || p.open
}

// Is reports whether a fact has a value for certain.
func (f *Facts) Is(fact Fact, value string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of[fact]
	if p == nil || p.open || len(p.now) != 1 {
		return false
	}
	_, is := p.now[value]
	return is
}

// Known are all facts that somebody has asked for.
func (f *Facts) Known() []Fact {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.of))
}
