// Command load finds the highest rate of requests at which an API host keeps the 99th percentile below a limit, holds it, and
// then sends three times as many: what is too much has to be refused, at once and with the time to come back, and nothing may
// grow or stay slow. Meanwhile thousands of clients hold connections to databases through PgBouncer. The agent, PostgreSQL,
// PgBouncer and the hosts are real; the senders run on the same machine. It exits with status 1 where a promise is broken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// promise is the 99th percentile that the highest rate keeps.
const promise = 100 * time.Millisecond

type settings struct {
	hold, flood time.Duration
	clients     int
}

func main() {
	var s settings
	flag.DurationVar(&s.hold, "hold", 10*time.Minute, "for how long the highest rate is held")
	flag.DurationVar(&s.flood, "flood", 2*time.Minute, "for how long three times as many requests come")
	flag.IntVar(&s.clients, "clients", 5000, "how many clients are connected through PgBouncer")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, s settings) (err error) {
	w, err := newWorld(ctx)
	defer func() { err = errors.Join(err, w.End()) }()
	if err != nil {
		return err
	}
	crowd, err := w.connect(ctx, s.clients)
	if err != nil {
		return err
	}
	highest, err := w.highest(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("highest rate with a 99th percentile below %v: %d/s\n", promise, highest)
	if err := w.limit(ctx, highest); err != nil {
		return err
	}
	before, err := w.held(ctx)
	if err != nil {
		return err
	}
	var broken []error
	hold := w.send(ctx, highest, s.hold)
	fmt.Printf("held for %v: %s\n", s.hold, hold)
	broken = append(broken, hold.kept())
	flood := w.send(ctx, 3*highest, s.flood)
	fmt.Printf("three times as many, for %v: %s\n", s.flood, flood)
	broken = append(broken, flood.refusedWell())
	if err := sleep(ctx, time.Second); err != nil {
		return err
	}
	after := w.send(ctx, highest, 30*time.Second)
	fmt.Printf("a second later: %s\n", after)
	broken = append(broken, after.kept())
	now, err := w.held(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("the API host held %s before, and %s after\n", before, now)
	broken = append(broken, now.grownFrom(before))
	answers := crowd.end()
	fmt.Printf("%d clients through PgBouncer: %s\n", s.clients, answers)
	return errors.Join(append(broken, answers.kept())...)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
