package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/backup"
)

// backlog is for how long hosts work on what is overdue, at most.
const backlog = 2 * time.Minute

// mostPerPiece is how many times as long as of the smallest size a piece of work may take of the largest.
const mostPerPiece = 2

// claims measures hosts that have to make up for a day: the backups of all databases are overdue.
func (w *world) claims(ctx context.Context) (all []figure, err error) {
	err = w.withHosts(ctx, func(h hosts) error {
		const done = "SELECT count(*) FROM operations WHERE kind = 'backup' AND status = 'succeeded' AND created_at > $1"
		before, err := w.spent(ctx, h)
		if err != nil {
			return err
		}
		began, n := time.Now(), 0
		if _, err := w.meta.ExecContext(ctx, "UPDATE databases SET next_backup_at = now() - interval '1 hour'"); err != nil {
			return err
		}
		for time.Since(began) < backlog && n < w.databases {
			if err := sleep(ctx, 100*time.Millisecond); err != nil {
				return err
			}
			if n, err = w.count(ctx, done, began); err != nil {
				return err
			}
		}
		c, err := w.spent(ctx, h)
		if err != nil {
			return err
		}
		c = c.since(before)
		if n == 0 {
			return fmt.Errorf("no backup was made of %d that are overdue", w.databases)
		}
		all = []figure{
			{"backups that are overdue", float64(n) / time.Since(began).Seconds(), aSecond, mostPerPiece},
			took("one of them, hosts", c.hosts/time.Duration(n), mostPerPiece),
			took("one of them, metadata", c.metadata/time.Duration(n), mostPerPiece),
		}
		return nil
	})
	return all, err
}

// ordinary is for how long hosts do the day's backups as they come.
const ordinary = 3 * time.Minute

// day measures how the daily backups are spread, and how late they are made.
func (w *world) day(ctx context.Context) (all []figure, err error) {
	const least = 6 // of an hour
	spread := make([]int, 24*least)
	for _, one := range w.rows.databases {
		spread[backup.Slot(one.id)/(time.Hour/least)]++
	}
	mean := float64(w.databases) / float64(len(spread))
	all = []figure{
		{"daily backups in ten minutes, most of the mean", float64(slices.Max(spread)) / mean, number, 1},
	}
	now := time.Now()
	tx, err := w.meta.BeginTx(ctx, nil)
	if err != nil {
		return all, err
	}
	for _, one := range w.rows.databases {
		next := backup.NextDaily(one.id, now)
		if _, err := tx.ExecContext(ctx, "UPDATE databases SET next_backup_at = $2 WHERE id = $1", one.id, next); err != nil {
			return all, err
		}
	}
	if err := tx.Commit(); err != nil {
		return all, err
	}
	err = w.withHosts(ctx, func(h hosts) error {
		if err := sleep(ctx, ordinary); err != nil {
			return err
		}
		longest, err := w.count(ctx, `
			SELECT (extract(epoch FROM max(o.finished_at - date_trunc('second', o.created_at))) * 1000)::bigint
			FROM operations o WHERE kind = 'backup' AND o.created_at > $1`, now)
		if err != nil {
			return err
		}
		waiting, err := w.count(ctx, "SELECT count(*) FROM databases WHERE next_backup_at < now() - interval '10 seconds'")
		all = append(all, took("a day's backups as they come, the longest", time.Duration(longest)*time.Millisecond, 0),
			figure{"those that should have begun ten seconds ago", float64(waiting), number, 0})
		return err
	})
	return all, err
}

// endingLeases is how many leases end at the same time, at most.
const endingLeases = 1000

// leases measures how long it takes until previews are deleted whose leases end at the same time.
func (w *world) leases(ctx context.Context) (all []figure, err error) {
	err = w.withHosts(ctx, func(h hosts) error {
		ended := min(endingLeases, w.databases/previewEvery)
		_, err := w.meta.ExecContext(ctx, `UPDATE previews SET expires_at = now() WHERE database_id IN (
			SELECT database_id FROM previews WHERE lease_status = 'active' ORDER BY database_id LIMIT $1)`, ended)
		if err != nil {
			return err
		}
		began := time.Now()
		for left := ended; left > 0; {
			if time.Since(began) > 10*time.Minute {
				return fmt.Errorf("%d of %d previews were not deleted in %v", left, ended, time.Since(began))
			}
			if err := sleep(ctx, 200*time.Millisecond); err != nil {
				return err
			}
			left, err = w.count(ctx, "SELECT $1 - count(*) FROM previews WHERE lease_status = 'deleted'", ended)
			if err != nil {
				return err
			}
		}
		all = []figure{
			{"leases that end at once, deleted", float64(ended) / time.Since(began).Seconds(), aSecond, 0},
		}
		return nil
	})
	return all, err
}
