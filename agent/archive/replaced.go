package archive

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/pgherd/pgherd/agent/pg"
)

// ErrReplaced says that another server was recovered from this one's archive, and has taken its place: this one must not write
// any more, neither into the archive nor for anybody.
var ErrReplaced = errors.New("another server was recovered from the archive of this one, and has taken its place")

// Confirm returns an ErrReplaced where the archive says so. Any other error says that it could not be read.
func (a *Archive) Confirm(ctx context.Context) error {
	place, err := a.look(ctx)
	if err != nil {
		return err
	}
	engine, err := a.Open(place)
	if err != nil {
		return err
	}
	_, err = a.follow(ctx, engine, place)
	return err
}

// follow reads through which timelines the server has come to its own, and makes sure that the archive is still its own.
//
// A server that was recovered goes on with the next timeline, and its agent puts the history of that into the archive before
// anything else. So the history is the claim: whoever finds a later one than its own, or another of the same number, is replaced.
func (a *Archive) follow(ctx context.Context, e Engine, p Place) (l lineage, err error) {
	written, err := a.writing(ctx)
	if err != nil {
		return l, err
	}
	l.timeline = written.timeline()
	claimed, err := e.Timelines(ctx)
	if err != nil {
		return l, err
	}
	if len(claimed) > 0 && slices.Max(claimed) > l.timeline {
		return l, fmt.Errorf("%w: it has the timeline %d, and this one %d", ErrReplaced, slices.Max(claimed), l.timeline)
	}
	if l.timeline == 1 {
		return l, nil
	}
	path := filepath.Join(p.DataDir, "pg_wal", l.timeline.History())
	own, err := os.ReadFile(path)
	if err != nil {
		return l, err
	}
	if l.forks, err = ParseHistory(own); err != nil {
		return l, fmt.Errorf("%s: %w", path, err)
	}
	if !slices.Contains(claimed, l.timeline) {
		return l, e.Push(ctx, path)
	}
	has, err := e.History(ctx, l.timeline)
	if err == nil && !bytes.Equal(has, own) {
		err = fmt.Errorf("%w: both have the timeline %d", ErrReplaced, l.timeline)
	}
	return l, err
}

// confirmed is follow of a server whose engine is ready. An archive that is away says nothing.
func (a *Archive) confirmed(ctx context.Context) error {
	a.mu.Lock()
	engine, place := a.engine, a.place
	a.mu.Unlock()
	line, err := a.follow(ctx, engine, place)
	switch {
	case err == nil:
		a.mu.Lock()
		a.line = line
		a.mu.Unlock()
	case engine.IsAway(err):
		return nil
	}
	return err
}

// lineage is the server's, as far as it is known.
func (a *Archive) lineage() lineage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.line
}

// replaced ends the archive: nothing is taken any more.
func (a *Archive) replaced(err error) {
	a.mu.Lock()
	a.over = err
	a.mu.Unlock()
	a.Replaced(err)
}

// writing is the segment in which something was written last.
func (a *Archive) writing(ctx context.Context) (last Segment, err error) {
	err = a.Server.Admin("", func(db *sql.DB) error {
		// A segment in which there is nothing yet begins with a header of 40 bytes; the function takes a boundary for the one before.
		const query = `SELECT pg_walfile_name(CASE WHEN o.file_offset <= 40 THEN l - o.file_offset ELSE l END)
			FROM pg_current_wal_insert_lsn() l, pg_walfile_name_offset(l) o`
		last, err = pg.One[Segment](ctx, db, query)
		return err
	})
	return last, err
}
