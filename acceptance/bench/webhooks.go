package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	prompt = 49 // endpoints that answer at once; one more is another in each run

	burst        = 80 // events at once, for the rate: more than a host makes attempts at a time
	steady       = 30 // events one after the other, for the latency
	steadyPause  = time.Second / 3
	leastPerSec  = rate(300)
	mostDeferred = 1.5 // how much later deliveries may arrive because of the endpoint that hangs
)

// measureWebhooks counts deliveries to 50 endpoints, one of which hangs, and how much later the others get theirs because of it.
func measureWebhooks(ctx context.Context, b *bench) (_ []row, err error) {
	p, err := newPost(ctx, b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close(ctx)) }()
	if _, err := p.rate(ctx); err != nil { // warms up
		return nil, err
	}
	var rates, plain, ratios []float64
	var alone, beside []time.Duration
	for range b.runs {
		without, err := p.beside(ctx, "ok")
		if err != nil {
			return nil, err
		}
		with, err := p.beside(ctx, "hang")
		if err != nil {
			return nil, err
		}
		bare, err := p.bareRate(ctx)
		if err != nil {
			return nil, err
		}
		rates, plain = append(rates, with.rate), append(plain, bare)
		alone, beside = append(alone, without.p99), append(beside, with.p99)
		ratios = append(ratios, with.p99.Seconds()/without.p99.Seconds())
	}
	reached, bare := rate(median(rates)), rate(median(plain))
	return []row{
		{"deliveries to 50 endpoints, one of which hangs, against bare POSTs", reached, bare, float64(reached / bare),
			"≥ " + leastPerSec.String(), reached >= leastPerSec},
		atMost(fmt.Sprintf("p99 until delivered, beside one that hangs against beside none (%d events to 49)", steady),
			span(median(beside)), span(median(alone)), median(ratios), mostDeferred),
	}, nil
}
