package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

const (
	mostToRestore    = 1.15 // times what gunzip | psql takes
	mostToCompareToo = 1.5
	mostToRestoreIn  = 150 * mebibyte
	loadPause        = 20 * time.Millisecond
)

// measureRestore has the agent make the copy of a restore from a backup: database, roles, grants, the schema held against the
// sidecar, with and without the contents held against the manifest. By hand the same file goes into a new database.
func measureRestore(ctx context.Context, b *bench) (rows []row, err error) {
	text, err := b.withBackup(ctx)
	if err != nil {
		return nil, err
	}
	file := b.path("restored.sql.gz")
	if err := b.client.save(ctx, text, file); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Remove(file)) }()
	agent, err := b.reachAgent()
	if err != nil {
		return nil, err
	}
	if err := b.restartAgent(ctx); err != nil { // so that its memory is that of restores
		return nil, err
	}
	var peak int64
	for _, compared := range []bool{false, true} {
		l := &loader{bench: b, agent: agent, text: text, compare: compared}
		h := &byHand{bench: b, file: file}
		t, err := inTurn((b.runs+1)/2, l.way(ctx), h.way(ctx))
		if err != nil {
			return nil, err
		}
		what, limit := "  compared with its digests", mostToCompareToo
		if !compared {
			what, limit = fmt.Sprintf("restore of a database of %s against gunzip | psql", amount(text.size)), mostToRestore
		}
		rows = append(rows, t.row(what, limit), told("    CPU time, with PostgreSQL's", l.used[1:], h.used[1:]))
		peak = max(peak, l.peak)
	}
	return append(rows, row{
		measure: "  peak memory of the agent", ours: amount(peak).String(),
		limit: "< " + amount(mostToRestoreIn).String(), met: peak < mostToRestoreIn,
	}), nil
}

// save downloads a backup.
func (c client) save(ctx context.Context, text *textDatabase, path string) (err error) {
	from, err := c.Backups.Download(ctx, text.ID, backup.Filename(text.last.Filename))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// loader has copies made for restores, which are dropped when they have been measured.
type loader struct {
	bench     *bench
	agent     ports.Agent
	text      *textDatabase
	compare   bool
	operation id.OperationID
	watch     *memory
	peak      int64
	began     [2]time.Duration
	used      []time.Duration // by the agent and PostgreSQL
}

func (l *loader) way(ctx context.Context) way {
	return way{
		before: func(int) (err error) {
			l.operation = newOperation()
			if l.watch, err = watch(l.bench.agent.Pid()); err != nil {
				return err
			}
			l.began, err = l.bench.cpu()
			return err
		},
		measured: func(int) error { return l.load(ctx) },
		after: func(int) error {
			now, err := l.bench.cpu()
			l.used = append(l.used, now[0]+now[1]-l.began[0]-l.began[1])
			used, watched := l.watch.end()
			l.peak = max(l.peak, used.peak)
			return errors.Join(err, watched, ports.Close(ctx, l.agent, ports.Fence{OperationID: l.operation, Epoch: 1}))
		},
	}
}

func (l *loader) load(ctx context.Context) error {
	asks := command.Load{
		DatabaseID: l.text.ID, Compare: l.compare,
		Source: command.Source{DatabaseID: l.text.ID, Filename: backup.Filename(l.text.last.Filename)},
	}
	for {
		report, err := ports.Do(ctx, l.agent, ports.Fence{OperationID: l.operation, Epoch: 1}, asks)
		switch {
		case err != nil:
			return err
		case report.State == command.LoadReady:
			return nil
		case report.State == command.LoadFailed:
			return fmt.Errorf("the copy: %s: %s", report.Reason, report.Message)
		}
		time.Sleep(loadPause)
	}
}

func newOperation() id.OperationID {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return id.FromBytes[id.OperationID](random)
}

// byHand is the baseline: nothing is checked, and everything belongs to one login.
type byHand struct {
	bench *bench
	file  string
	used  []time.Duration // by gunzip, psql and PostgreSQL
}

func (h *byHand) way(ctx context.Context) way {
	const name = "by_hand"
	var began [2]time.Duration
	var ended *os.ProcessState
	return way{
		before: func(int) (err error) {
			began, err = h.bench.cpu()
			return err
		},
		measured: func(int) (err error) {
			if err := h.bench.sql(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
				return err
			}
			const script = `gunzip -c "$1" | "$PSQL" -X -q -o /dev/null -v ON_ERROR_STOP=1 "$2"`
			ended, err = h.bench.byHand(ctx, script, h.file, h.bench.at(name))
			return err
		},
		after: func(int) error {
			now, err := h.bench.cpu()
			h.used = append(h.used, now[1]-began[1]+ended.UserTime()+ended.SystemTime())
			return errors.Join(err, h.bench.sql(ctx, "DROP DATABASE "+name))
		},
	}
}
