package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
)

const (
	// mostForDigests is how many times as long a verified backup with digests may take as one that compares numbers of rows.
	mostForDigests   = 1.5
	mostWhenVerified = 150 * mebibyte
)

// verifiedWay is one of the two ways to compare a restored copy, with the CPU time that its backups took.
type verifiedWay struct {
	bench *bench
	text  *textDatabase
	flags []string
	agent []time.Duration
	both  []time.Duration // with PostgreSQL
	peak  int64           // of the agent's memory, at its highest
	began [2]time.Duration
	watch *memory
}

// measureVerified takes verified backups with digests of contents and without, each by an agent that has just started.
func measureVerified(ctx context.Context, b *bench) (rows []row, err error) {
	text, err := b.withText(ctx)
	if err != nil {
		return nil, err
	}
	digests := &verifiedWay{bench: b, text: text}
	counts := &verifiedWay{bench: b, text: text, flags: []string{"--backup-counts-only"}}
	if err := b.verifyBackups(ctx, true); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.verifyBackups(ctx, false), b.restartAgent(ctx)) }()
	t, err := inTurn((b.runs+1)/2, digests.way(ctx), counts.way(ctx))
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("backup of a database of %s, verified by digests, against by counts", amount(text.size))
	peak := row{
		measure: "  peak memory of the agent", ours: amount(digests.peak).String(), baseline: amount(counts.peak).String(),
		limit: "< " + amount(mostWhenVerified).String(), met: digests.peak < mostWhenVerified,
	}
	return []row{
		t.row(what, mostForDigests),
		told("  CPU time of agent and pg_dump", digests.agent, counts.agent),
		told("  CPU time of these and PostgreSQL", digests.both, counts.both), peak,
	}, nil
}

// told is a row without a limit.
func told(measure string, ours, byHand []time.Duration) row {
	a, b := median(ours), median(byHand)
	return row{
		measure: measure, ours: span(a).String(), baseline: span(b).String(), ratio: fmt.Sprintf("%.2f", a.Seconds()/b.Seconds()),
		met: true,
	}
}

func (b *bench) verifyBackups(ctx context.Context, on bool) error {
	_, err := b.stack.Admin(ctx, "account", "set", "--account", b.account.ID, fmt.Sprintf("--verify-backups=%t", on))
	return err
}

func (w *verifiedWay) way(ctx context.Context) way {
	return way{
		before: func(int) error { return w.before(ctx) },
		measured: func(int) error {
			done, err := stack.BackUp(ctx, w.bench.client.Client, w.text.ID)
			if err == nil && done.VerifiedAt == nil {
				err = errors.New("the backup is not verified")
			}
			return err
		},
		after: w.after,
	}
}

func (w *verifiedWay) before(ctx context.Context) (err error) {
	if err := w.bench.restartAgent(ctx, w.flags...); err != nil {
		return err
	}
	if w.watch, err = watch(w.bench.agent.Pid()); err != nil {
		return err
	}
	w.began, err = w.bench.cpu()
	return err
}

func (w *verifiedWay) after(n int) error {
	used, err := w.watch.end()
	now, cpu := w.bench.cpu()
	if err = errors.Join(err, cpu); err != nil {
		return err
	}
	w.peak = max(w.peak, used.peak)
	if n > 0 { // the first warms up
		w.agent = append(w.agent, now[0]-w.began[0])
		w.both = append(w.both, now[0]+now[1]-w.began[0]-w.began[1])
	}
	return nil
}

// cpu is the CPU time of the agent, and of PostgreSQL.
func (b *bench) cpu() (used [2]time.Duration, err error) {
	for i, pid := range []int{b.agent.Pid(), b.stack.Server.Pid()} {
		if used[i], err = cpu(pid); err != nil {
			return used, err
		}
	}
	return used, nil
}

// restartAgent puts an agent with these flags in the place of the one that runs.
func (b *bench) restartAgent(ctx context.Context, flags ...string) error {
	if err := b.agent.Stop(ctx); err != nil {
		return err
	}
	next, err := b.stack.LaunchAgent("", flags...)
	if err != nil {
		return err
	}
	b.agent = next
	return b.stack.AwaitAgent(ctx, next)
}
