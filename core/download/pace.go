// Package download holds the rule that keeps one download from holding what others need: how slow it may be.
package download

import "time"

// Rule is the lowest rate that one side of a download must keep up, and for how long it may fall behind it.
type Rule struct {
	Rate   int64         // bytes a second
	Window time.Duration // how far a side may fall behind the rate; one that moves nothing is broken off after this time
}

// Begin returns the pace of a side that has not begun.
func (r Rule) Begin() Pace { return Pace{rule: r} }

// due is the time that n bytes take at the lowest rate.
func (r Rule) due(n int) time.Duration {
	bytes := int64(max(0, n))
	return time.Duration(bytes/r.Rate)*time.Second + time.Duration(float64(bytes%r.Rate)/float64(r.Rate)*float64(time.Second))
}

// Pace judges one side of a download by the time that it took for its own steps. While the other side has its turn, no time
// passes here: a client does not answer for an agent that delivers nothing.
//
// It is how far the side is behind the lowest rate, in time. Whoever keeps the rate is never behind by more than a window;
// whoever has half of it is broken off after two windows. A side that was faster saves up nothing for later, so what a socket
// buffer takes at once does not let a client stand still for longer.
type Pace struct {
	rule   Rule
	behind time.Duration
}

// Allowance is how long the next step may take if it moves all of n bytes.
func (p *Pace) Allowance(n int) time.Duration { return p.rule.Window - p.behind + p.rule.due(n) }

// Moved counts a step that took so long for n bytes. It reports whether the side keeps up.
func (p *Pace) Moved(n int, took time.Duration) bool {
	p.behind = max(0, p.behind+max(0, took)-p.rule.due(n))
	return p.behind < p.rule.Window
}
