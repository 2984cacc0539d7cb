package main

import (
	"context"
	"fmt"
	"time"
)

// pairsPerRun is how many databases each way are made for one of the runs asked for.
const pairsPerRun = 5

// measureCreate makes databases through the API and by hand, in turn, each way first every other time.
func measureCreate(ctx context.Context, b *bench) ([]row, error) {
	h, err := newHand(ctx, b)
	if err != nil {
		return nil, err
	}
	defer h.close()
	var byAPI, byHand []time.Duration
	for n := range b.runs*pairsPerRun + 1 {
		ways := []func() error{
			func() error { return timed(ctx, &byAPI, h.throughAPI, b, fmt.Sprintf("api-%03d", n)) },
			func() error { return timed(ctx, &byHand, h.byHand, b, fmt.Sprintf("hand-%03d", n)) },
		}
		for i := range ways {
			if err := ways[(i+n)%2](); err != nil {
				return nil, err
			}
		}
	}
	byAPI, byHand = byAPI[1:], byHand[1:] // the first of each warms up
	var ratios []float64
	for i := range byAPI {
		ratios = append(ratios, byAPI[i].Seconds()/byHand[i].Seconds())
	}
	what := fmt.Sprintf("POST /databases against the same SQL by hand (median of %d pairs)", len(ratios))
	return []row{atMost(what, span(median(byAPI)), span(median(byHand)), median(ratios), 1.5)}, nil
}

// maker makes one database and returns what drops it again.
type maker func(ctx context.Context, b *bench, name string) (drop func(context.Context) error, err error)

func timed(ctx context.Context, into *[]time.Duration, way maker, b *bench, name string) error {
	began := time.Now()
	drop, err := way(ctx, b, name)
	took := time.Since(began)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	*into = append(*into, took)
	return drop(ctx)
}
