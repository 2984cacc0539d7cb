package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// Moment names a database at a time.
type Moment struct {
	OperationID id.OperationID
	DatabaseID  id.DatabaseID
	At          time.Time
}

// sidesFolder is where the servers beside the live one are.
const sidesFolder = "beside"

// sweep removes what an agent before has left: its servers have died with it.
func (a *Archive) sweep() error {
	dir := filepath.Join(a.Dir, sidesFolder)
	left, err := os.ReadDir(dir)
	for _, e := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// Recover has a database back as it was at a moment, in a server of its own beside the live one: with every transaction that was
// committed then or before, and none that was later. The caller closes it.
//
// Errors: POINT_NOT_RECOVERABLE, DATABASE_NOT_FOUND, AwayError. After any other the outcome is open: try again.
func (a *Archive) Recover(ctx context.Context, m Moment, tell jobs.Tell) (side *Side, err error) {
	return a.beside(ctx, &Side{moment: m}, tell)
}

func (a *Archive) beside(ctx context.Context, side *Side, tell jobs.Tell) (_ *Side, err error) {
	release, err := a.takeSide(ctx, tell)
	if err != nil {
		return nil, err
	}
	if err = a.recover(ctx, side, tell); err != nil {
		release()
		return nil, err
	}
	side.release = release
	return side, nil
}

// takeSide waits until another server may run beside the live one.
func (a *Archive) takeSide(ctx context.Context, tell jobs.Tell) (release func(), err error) {
	select {
	case a.sides <- struct{}{}:
	default:
		tell(jobs.StageQueued, 0, command.Bytes{})
		select {
		case a.sides <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return func() { <-a.sides }, nil
}

func (a *Archive) recover(ctx context.Context, side *Side, tell jobs.Tell) error {
	m := side.moment
	if m.At.After(a.Now().Add(blurred)) {
		return fault.New(fault.PointNotRecoverable, "by the clock of the database's server, that moment is still to come")
	}
	tell(recovery.Fetching, 0, command.Bytes{})
	if err := a.reach(ctx, m.At); err != nil {
		return err
	}
	a.using.RLock()
	defer a.using.RUnlock()
	from, oids, err := a.plan(ctx, m)
	if err != nil {
		return err
	}
	side.archive, side.dir, side.oids, side.span = a, a.sideOf(m.OperationID), oids, from
	engine := a.ofServer()
	if err := side.fetch(ctx, engine); err != nil {
		return errors.Join(a.asFound(engine, err), side.remove())
	}
	a.Crash("archive.fetched")
	tell(recovery.Replaying, 0, command.Bytes{})
	if err := side.replay(ctx, tell); err != nil {
		return errors.Join(err, side.Close())
	}
	a.Crash("archive.replayed")
	return nil
}

// asFound marks an error of the engine that says that the archive does not answer.
func (a *Archive) asFound(e Engine, err error) error {
	if e.IsAway(err) {
		return a.asAway(err)
	}
	return err
}

func (a *Archive) asAway(err error) error {
	return fault.Wrap(&AwayError{err}, fault.BackupStorageUnavailable, "where the archive is kept does not answer")
}

// reachTime bounds how long what was just written may take to be stored.
const reachTime = time.Minute

// reach has the archive hold a commit that is later than a moment: without it, nobody could tell that nothing is missing before.
func (a *Archive) reach(ctx context.Context, at time.Time) error {
	if last, ok := a.journal.last(); ok && last.Ended.After(at) {
		return nil
	}
	if err := loop.Wait(ctx, at.Sub(a.Now())); err != nil {
		return err
	}
	return a.storeUntil(ctx, at)
}

// endSegment has a commit of now stored, with all before it.
func (a *Archive) endSegment(ctx context.Context) error { return a.storeUntil(ctx, a.Now()) }

// ending is a segment that was ended since somebody waits for what it has.
type ending struct {
	segment Segment
	at      time.Time // just before its end
}

// storeUntil has a commit stored that is later than a moment, which is over, with all before it. A segment is ended for that, and
// takes its whole size where segments wait: of those who ask meanwhile, none has another one ended before that is stored or late.
func (a *Archive) storeUntil(ctx context.Context, moment time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	for {
		ended, err := a.endOne(ctx)
		if err == nil {
			err = a.awaitStored(ctx, ended.segment)
		}
		if err != nil || !ended.at.Before(moment) {
			return err
		}
	}
}

// endOne ends a segment, or returns the one that was ended before and is not stored yet. One that is late is not waited for any
// more: it may have been let go of, and nothing be written after it.
func (a *Archive) endOne(ctx context.Context) (ending, error) {
	select {
	case a.endings <- struct{}{}:
		defer func() { <-a.endings }()
	case <-ctx.Done():
		return ending{}, a.asAway(ctx.Err())
	}
	last, _ := a.journal.last()
	now, before := a.Now(), a.lastEnding()
	if before.segment > last.Segment && now.Sub(before.at) < reachTime {
		return before, nil
	}
	segment, err := a.switchSegment(ctx)
	if err != nil {
		return ending{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = ending{segment, now}
	return a.ended, nil
}

func (a *Archive) lastEnding() ending {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}

// surely is until when the last segment that is stored has everything, by the one that was ended here: its end is noted earlier
// than it was. Zero: that is not known.
func (a *Archive) surely(last Stored) time.Time {
	if ended := a.lastEnding(); ended.segment != "" && ended.segment <= last.Segment {
		return ended.at
	}
	return time.Time{}
}

// switchSegment commits something, and ends the segment that has it.
func (a *Archive) switchSegment(ctx context.Context) (ended Segment, err error) {
	err = a.Server.Admin("", func(db *sql.DB) error {
		const beat = `INSERT INTO ledger.heartbeat (at) VALUES (clock_timestamp())
			ON CONFLICT (single) DO UPDATE SET at = clock_timestamp()`
		if _, err := db.ExecContext(ctx, beat); err != nil {
			return err
		}
		ended, err = pg.One[Segment](ctx, db, "SELECT pg_walfile_name(pg_switch_wal())")
		return err
	})
	return ended, err
}

// awaitStored waits until a segment is stored, or one after it.
func (a *Archive) awaitStored(ctx context.Context, ended Segment) error {
	for {
		a.mu.Lock()
		changed, why := a.changed, a.trouble.why
		a.mu.Unlock()
		if last, ok := a.journal.last(); ok && last.Segment >= ended {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if why == "" {
				why = "it was not stored in time"
			}
			return a.asAway(fmt.Errorf("the segment %s: %s", ended, why))
		}
	}
}

// plan finds what a moment is had back from: a copy of the server with the segments after it, and the databases of PostgreSQL
// that the database may have been then.
func (a *Archive) plan(ctx context.Context, m Moment) (from Span, oids []uint32, err error) {
	if a.ofServer() == nil {
		return from, nil, a.asAway(errors.New("the archive is not ready"))
	}
	lives, err := a.incarnations(ctx, m.DatabaseID)
	if err != nil {
		return from, nil, err
	}
	for _, l := range lives {
		begun := !m.At.Before(l.Since.Add(-blurred))
		if begun && (l.Until.IsZero() || !m.At.After(l.Until.Add(blurred))) {
			oids = append(oids, l.oid)
		}
	}
	if len(oids) == 0 {
		return from, nil, fault.New(fault.PointNotRecoverable, "the database was not there then")
	}
	list := a.spansTo(m.At)
	w := window(list, Life{Since: lives[0].Since, Until: lives[len(lives)-1].Until})
	if err := w.Check(m.At, a.Now()); err != nil {
		return from, nil, err
	}
	from, ok := spanFor(list, m.At)
	if !ok {
		return from, nil, fault.New(fault.PointNotRecoverable, "the archive does not have that moment")
	}
	return from, oids, nil
}

// spansTo are the spans of a moment whose commits are stored: the last one reaches to it, where it is of the newest segment.
func (a *Archive) spansTo(at time.Time) []Span {
	_, backups, size := a.kept()
	stored, line := a.stored(), a.lineage()
	list := line.cut(spans(backups, stored, size), size)
	for i, s := range list {
		newest := s.Last == stored[len(stored)-1].Segment && line.ends(s)
		if newest && s.To.Before(at) {
			list[i].To = at
		}
	}
	return list
}

// blurred is how far the times of the ledger may be from those of commits. What the database was is read from the ledger of the
// server beside.
const blurred = time.Minute

// Room is how many bytes the server beside may take for a moment: the database as large as it is now, and what is replayed, which
// changes others, too.
func (a *Archive) Room(ctx context.Context, m Moment, size int64) (int64, error) {
	from, _, err := a.plan(ctx, m)
	if err != nil {
		return 0, err
	}
	return a.besideOf(from, size), nil
}

// Used is how many bytes the server beside has on its disk for an operation.
func (a *Archive) Used(op id.OperationID) (bytes int64, err error) {
	err = filepath.WalkDir(a.sideOf(op), func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a file that is gone by now
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += s.Blocks * 512 // files of other databases have holes only
			}
		}
		return nil
	})
	return bytes, err
}

func (a *Archive) sideOf(op id.OperationID) string {
	return filepath.Join(a.Dir, sidesFolder, string(op))
}

// Size is how many bytes the database has where it stands, in service or not; 0 where it does not.
func (a *Archive) Size(ctx context.Context, of id.DatabaseID) (size int64, err error) {
	err = a.Server.Admin("", func(db *sql.DB) error {
		const query = `SELECT coalesce(sum(pg_database_size(p.oid)), 0)::bigint
			FROM ledger.database l JOIN pg_database p ON p.oid = l.oid WHERE l.id = $1`
		size, err = pg.One[int64](ctx, db, query, string(of))
		return err
	})
	return size, err
}

// besides is what the smallest server needs.
const besides = 256 << 20

func (a *Archive) log(m Moment) *zap.Logger {
	return a.Log.With(zap.String("operationId", string(m.OperationID)), zap.String("databaseId", string(m.DatabaseID)),
		zap.Time("at", m.At))
}
