package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// outdated is how many entries of the log are too old, for each database: an installation that was away for some days.
const outdated = 10

// retention measures how fast what is too old goes.
func (w *world) retention(ctx context.Context) (all []figure, err error) {
	_, err = w.meta.ExecContext(ctx, `INSERT INTO audit_entries (id, at, account_id, database_id, actor, action, details)
		SELECT gen_random_uuid(), now() - interval '3 years', d.account_id, d.id, 'schedule', 'backup.requested', '{}'
		FROM generate_series(1, $1) k CROSS JOIN databases d`, outdated)
	if err != nil {
		return nil, err
	}
	if _, err := w.meta.ExecContext(ctx, "ANALYZE audit_entries"); err != nil {
		return nil, err
	}
	began := time.Now()
	err = w.withHosts(ctx, func(h hosts) error {
		for left := 1; left > 0; {
			if time.Since(began) > 10*time.Minute {
				return fmt.Errorf("%d entries that are too old stand after %v", left, time.Since(began))
			}
			if err := sleep(ctx, 100*time.Millisecond); err != nil {
				return err
			}
			left, err = w.count(ctx, "SELECT count(*) FROM audit_entries WHERE at < now() - interval '2 years'")
			if err != nil {
				return err
			}
		}
		return nil
	})
	all = []figure{{"entries of the log that are too old", float64(outdated*w.databases) / time.Since(began).Seconds(), aSecond, 0}}
	return all, err
}

// migration measures what a later release does to the largest table: a column with a default, and an index, while others write.
func (w *world) migration(ctx context.Context) (all []figure, err error) {
	stop := w.writing(ctx)
	defer func() { _, failed := stop(); err = errors.Join(err, failed) }()
	for _, step := range []struct{ what, statement string }{
		{"a new column of the log", "ALTER TABLE audit_entries ADD COLUMN tried text NOT NULL DEFAULT ''"},
		{"a new index of the log", "CREATE INDEX CONCURRENTLY audit_entries_tried ON audit_entries (actor, at)"},
	} {
		began := time.Now()
		if _, err := w.meta.ExecContext(ctx, step.statement); err != nil {
			return all, err
		}
		all = append(all, took(step.what, time.Since(began), 0))
	}
	wait, err := stop()
	if err != nil {
		return all, err
	}
	all = append(all, took("who writes to the log meanwhile, the longest wait", wait, 0))
	_, err = w.meta.ExecContext(ctx, "ALTER TABLE audit_entries DROP COLUMN tried")
	return all, err
}

// writing has entries be written one after the other until it is stopped, which tells how long the longest took.
func (w *world) writing(ctx context.Context) (stop func() (longest time.Duration, err error)) {
	ctx, cancel := context.WithCancel(ctx)
	var (
		most   time.Duration
		failed error
		ended  sync.WaitGroup
	)
	ended.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			_, err := w.meta.ExecContext(ctx, `INSERT INTO audit_entries (id, at, actor, action, details)
				VALUES (gen_random_uuid(), now(), 'measurement', 'tried', '{}')`)
			if err != nil && ctx.Err() == nil {
				failed = err
				return
			}
			most = max(most, time.Since(began))
			_ = sleep(ctx, 5*time.Millisecond)
		}
	})
	return func() (time.Duration, error) { cancel(); ended.Wait(); return most, failed }
}
