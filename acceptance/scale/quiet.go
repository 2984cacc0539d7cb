package main

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
)

// starts measures how long hosts take until they are ready.
func (w *world) starts(ctx context.Context) (all []figure, err error) {
	for _, host := range []struct {
		what  string
		start func() (*stack.Host, error)
	}{
		{"start of an API host", func() (*stack.Host, error) { return w.stack.StartAPI(ctx, "") }},
		{"start of a batch host", func() (*stack.Host, error) { return w.stack.StartBatch(ctx, "") }},
		{"start of a dashboard", func() (*stack.Host, error) { return w.stack.StartDashboard(ctx) }},
	} {
		began := time.Now()
		h, err := host.start()
		if err != nil {
			return all, err
		}
		all = append(all, took(host.what, time.Since(began), 2))
		if err := h.Kill(); err != nil {
			return all, err
		}
	}
	return all, nil
}

// mostIdle is how many times as much as the smallest size the largest may take while nobody does anything.
const mostIdle = 2

// idles measures what hosts take that have nothing to do, with metrics read once a minute.
func (w *world) idles(ctx context.Context) (all []figure, err error) {
	if _, err := w.meta.ExecContext(ctx, "UPDATE databases SET next_backup_at = now() + interval '2 days'"); err != nil {
		return nil, err
	}
	if _, err := w.meta.ExecContext(ctx, "VACUUM ANALYZE databases"); err != nil {
		return nil, err
	}
	err = w.withHosts(ctx, func(h hosts) error {
		before, err := w.spent(ctx, h)
		if err != nil {
			return err
		}
		began := time.Now()
		for time.Since(began) < w.idle {
			for _, one := range h.all() {
				if _, err := one.Metrics(ctx); err != nil {
					return err
				}
			}
			if err := sleep(ctx, min(time.Minute, w.idle-time.Since(began))); err != nil {
				return err
			}
		}
		c, err := w.spent(ctx, h)
		if err != nil {
			return err
		}
		c, minutes := c.since(before), time.Since(began).Minutes()
		a := func(d time.Duration) time.Duration { return time.Duration(float64(d) / minutes) }
		all = []figure{
			took(idleMinute+", hosts", a(c.hosts), mostIdle), took(idleMinute+", metadata", a(c.metadata), mostIdle),
			{idleMinute + ", transactions", float64(c.statements) / minutes, number, mostIdle},
			{idleMinute + ", WAL", float64(c.wal) / minutes, bytes, 0},
		}
		return nil
	})
	return all, err
}
