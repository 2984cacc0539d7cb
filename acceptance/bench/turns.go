package main

import (
	"fmt"
	"time"
)

// way is one of two that are compared. Only measured counts; before prepares it and after takes it back. Each may be nil but
// measured.
type way struct{ before, measured, after func(n int) error }

// turns are the times of two ways.
type turns struct{ ours, byHand []time.Duration }

// inTurn measures two ways in turn, each first every other time.
func inTurn(pairs int, ours, byHand way) (t turns, err error) {
	for n := range pairs + 1 {
		ways := []func() error{
			func() error { return ours.clock(n, &t.ours) },
			func() error { return byHand.clock(n, &t.byHand) },
		}
		for i := range ways {
			if err := ways[(i+n)%2](); err != nil {
				return t, err
			}
		}
	}
	t.ours, t.byHand = t.ours[1:], t.byHand[1:] // the first of each warms up
	return t, nil
}

func (w way) clock(n int, into *[]time.Duration) error {
	if w.before != nil {
		if err := w.before(n); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := w.measured(n); err != nil {
		return err
	}
	*into = append(*into, time.Since(began))
	if w.after == nil {
		return nil
	}
	return w.after(n)
}

// row compares medians; the ratio is the median of those of the pairs.
func (t turns) row(measure string, limit float64) row {
	var ratios []float64
	for i := range t.ours {
		ratios = append(ratios, t.ours[i].Seconds()/t.byHand[i].Seconds())
	}
	return atMost(fmt.Sprintf("%s (median of %d pairs)", measure, len(ratios)), span(median(t.ours)), span(median(t.byHand)),
		median(ratios), limit)
}

// toldOf is a row of medians without a limit.
func toldOf(measure string, t turns) row {
	return told(measure, span(median(t.ours)), span(median(t.byHand)))
}
