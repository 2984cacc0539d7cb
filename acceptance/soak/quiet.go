//go:build linux

package soak

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/core/id"
)

// resting is how long everything may take to come to rest: what waits for a lease, or tries again ever later, included.
const resting = 10 * time.Minute

// comesToRest waits until all runs that was disturbed, and nobody has anything left to do. What each operation has come to is
// then taken.
func (r *run) comesToRest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resting)
	defer cancel()
	for _, step := range []func(context.Context) error{r.everythingRuns, r.workIsDone, r.operationsEnded, r.deliveriesEnded} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// until asks again and again until there is no error, which is then why the wait has failed. It says what a long wait is for.
func until(ctx context.Context, holds func() error) error {
	began, said := time.Now(), time.Now()
	for {
		err := holds()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("not within %s: %w", time.Since(began).Round(time.Second), err)
		}
		if time.Since(said) > time.Minute {
			log.Printf("waiting for %s: %v", time.Since(began).Round(time.Second), err)
			said = time.Now()
		}
		wait(ctx, time.Second)
	}
}

// everythingRuns: each process runs, the hosts are ready, and the agents answer.
func (r *run) everythingRuns(ctx context.Context) error {
	return until(ctx, func() error {
		var err error
		for _, s := range r.services {
			err = errors.Join(err, s.runs())
		}
		for n := range r.apis {
			for _, h := range []*stack.Host{r.apis[n], r.batches[n], r.dashboards[n]} {
				limit, cancel := context.WithTimeout(ctx, asked)
				err = errors.Join(err, h.Ready(limit))
				cancel()
			}
		}
		return err
	})
}

// workIsDone: no operation is open, no change is pending, and every server was told everything. A restore that a caller drives
// waits for that caller for an hour, so the driver takes its place.
func (r *run) workIsDone(ctx context.Context) error {
	return until(ctx, func() error { return errors.Join(r.drive(ctx), r.nothing(ctx, stack.Unfinished)) })
}

// drive has each restore that waits for its caller go on.
func (r *run) drive(ctx context.Context) error {
	const waiting = `SELECT o.id, d.account_id FROM operations o JOIN databases d ON d.id = o.database_id
		WHERE o.kind = 'restore' AND o.status IN ('queued', 'running') AND o.not_before > now() + interval '1 minute'`
	found, err := r.metadata(ctx, waiting)
	for _, row := range found {
		for _, a := range r.accounts {
			if a.ID == row[1] {
				_, _ = r.client(a, 0).Restores.Advance(ctx, id.OperationID(row[0])) // it is asked again
			}
		}
	}
	return err
}

// deliveriesEnded: every event was delivered, or was tried as often as it is to be.
func (r *run) deliveriesEnded(ctx context.Context) error {
	const open = `SELECT coalesce(string_agg(what, '; '), '') FROM (
		SELECT format('event %s was not taken', id) AS what FROM outbox_events WHERE taken IS NULL
		UNION ALL SELECT format('%s to %s is %s after %s attempts', event, webhook_id, status, attempts_used) FROM webhook_deliveries
		 WHERE status IN ('pending', 'delivering')) open`
	return until(ctx, func() error { return r.nothing(ctx, open) })
}

// nothing is an error where a query of the metadata tells of something.
func (r *run) nothing(ctx context.Context, query string) error {
	found, err := r.metadata(ctx, query)
	if err == nil && len(found) == 1 && found[0][0] != "" {
		err = errors.New(found[0][0])
	}
	return err
}

// metadata asks the metadata as their administrator.
func (r *run) metadata(ctx context.Context, query string, args ...any) ([][]string, error) {
	return asks(ctx, r.first.MetadataURL(), query, args...)
}

// operationsEnded takes how each operation has ended that an action began.
func (r *run) operationsEnded(ctx context.Context) error {
	r.mu.Lock()
	open := r.operations
	r.operations = nil
	r.mu.Unlock()
	for _, o := range open {
		if o.id == "" {
			continue // what answered told of none
		}
		if s, err := r.ended(ctx, o); err != nil {
			return fmt.Errorf("operation %s of step %d is %s: %w", o.id, o.step, s, err)
		}
	}
	return r.lostOnes(ctx)
}

// lostOnes takes what has become of databases whose creation was not answered: they are there by their names, or never were.
func (r *run) lostOnes(ctx context.Context) error {
	for _, t := range r.all(plan.Database, plan.Single) {
		if t.known() != "" {
			continue
		}
		found, err := r.metadata(ctx, "SELECT id FROM databases WHERE name = $1 AND account_id = $2", t.name, t.account.ID)
		if err != nil {
			return err
		}
		if len(found) == 1 {
			t.is(found[0][0])
		}
	}
	return nil
}
