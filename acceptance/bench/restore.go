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
	m, err := watch(b.agent.Pid())
	if err != nil {
		return nil, err
	}
	for _, compared := range []bool{false, true} {
		t, err := inTurn((b.runs+1)/2, loading(ctx, agent, text, compared), b.restoring(ctx, file))
		if err != nil {
			return nil, err
		}
		what, limit := "  compared with its digests", mostToCompareToo
		if !compared {
			what, limit = fmt.Sprintf("restore of a database of %s against gunzip | psql", amount(text.size)), mostToRestore
		}
		rows = append(rows, t.row(what, limit))
	}
	used, err := m.end()
	return append(rows, below("  peak memory of the agent", used.peak, nil, mostToRestoreIn)), err
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

// loading has copies made for restores, which are dropped when they have been measured.
func loading(ctx context.Context, agent ports.Agent, text *textDatabase, compare bool) way {
	var fence ports.Fence
	return way{
		before: func(int) error {
			var random [16]byte
			_, _ = rand.Read(random[:]) // never fails
			fence = ports.Fence{OperationID: id.FromBytes[id.OperationID](random), Epoch: 1}
			return nil
		},
		measured: func(int) error {
			return makeCopy(ctx, agent, fence, command.Load{
				DatabaseID: text.ID, Compare: compare,
				Source: command.Source{DatabaseID: text.ID, Filename: backup.Filename(text.last.Filename)},
			})
		},
		after: func(int) error { return ports.Close(ctx, agent, fence) },
	}
}

func makeCopy(ctx context.Context, agent ports.Agent, fence ports.Fence, asks command.Load) error {
	for {
		report, err := ports.Do(ctx, agent, fence, asks)
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

// restoring is the baseline: nothing is checked, and everything belongs to one login.
func (b *bench) restoring(ctx context.Context, file string) way {
	return way{
		measured: func(int) error {
			const script = `gunzip -c "$1" | "$PSQL" -X -q -o /dev/null -v ON_ERROR_STOP=1 "$2"`
			return errors.Join(b.sql(ctx, "CREATE DATABASE by_hand TEMPLATE template0"), b.script(ctx, script, file, b.at("by_hand")))
		},
		after: func(int) error { return b.sql(ctx, "DROP DATABASE by_hand") },
	}
}
