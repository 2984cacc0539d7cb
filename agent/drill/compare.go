package drill

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/canary"
	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// notNow says why a drill was not run.
type notNow string

func (n notNow) Error() string { return string(n) }

// unknown marks an error that says nothing of what was had back.
type unknownError struct{ err error }

func (u unknownError) Error() string { return u.err.Error() }
func (u unknownError) Unwrap() error { return u.err }

func unknown(err error) error {
	if err == nil {
		return nil
	}
	return unknownError{err}
}

// do does a drill, and says how it has ended.
func (x *Drills) do(ctx context.Context, r *run) (found drill.Found) {
	p := &proof{x: x, run: r, now: time.Now()}
	err := p.prove(ctx)
	found = drill.Found{Outcome: drill.Proven, Facts: p.facts}
	if err != nil {
		found.Outcome, found.Why = drill.Failed, err.Error()
	}
	var later notNow
	var away *archive.AwayError
	switch {
	case errors.As(err, &later), errors.As(err, &away), errors.As(err, new(unknownError)),
		fault.Has(err, fault.BackupStorageFull), diskroom.IsFull(err):
		found.Outcome = drill.NotRun
	}
	return found
}

// proof is a drill with what it has found so far.
type proof struct {
	x     *Drills
	run   *run
	facts drill.Facts
	now   time.Time // when the part began that goes on
}

// lap is how long the part that goes on has taken, and begins the next one.
func (p *proof) lap() int64 {
	was := p.now
	p.now = time.Now()
	return p.now.Sub(was).Milliseconds()
}

// operation is whose room and sessions a drill's are.
func operation(of id.DrillID) id.OperationID { return id.OperationID(of) }

func (p *proof) moment() archive.Moment {
	return archive.Moment{OperationID: operation(p.run.of.ID), DatabaseID: p.run.of.DatabaseID, At: p.run.of.At}
}

// prove has the moment back, and returns why it is not proven.
func (p *proof) prove(ctx context.Context) error {
	x := p.x
	if err := x.quiet(ctx); err != nil {
		return unknown(err)
	}
	m := p.moment()
	c := x.Room.Claim(diskroom.Work{OperationID: m.OperationID, DatabaseID: m.DatabaseID, Waits: func() {}})
	defer c.End()
	if err := p.reserve(ctx, c); err != nil {
		return err
	}
	x.Crash("drill.begun")
	p.lap()
	used := func(context.Context) (int64, error) { return x.Archive.Used(m.OperationID) }
	return c.Watch(ctx, diskroom.Beside, used, func(ctx context.Context) (err error) {
		side, err := p.recover(ctx, m)
		if err != nil {
			return err
		}
		defer func() {
			if left := side.Close(); err == nil {
				err = unknown(left)
			}
		}()
		x.Crash("drill.restored")
		p.run.at(drill.Comparing)
		if err = p.compare(ctx, side); err == nil {
			x.Crash("drill.compared")
		}
		p.facts.Took.CompareMs = p.lap()
		return err
	})
}

// reserve takes room for the server beside, if nobody else needs it.
func (p *proof) reserve(ctx context.Context, c *diskroom.Claim) error {
	x, m := p.x, p.moment()
	size, err := x.Archive.Size(ctx, m.DatabaseID)
	if err != nil {
		return unknown(err)
	}
	bytes, err := x.Archive.Room(ctx, m, size)
	if err != nil { // such as a moment that is not in the window any more
		return unknown(err)
	}
	limited, cancel := context.WithTimeout(ctx, roomWait)
	defer cancel()
	err = c.Reserve(limited, func(context.Context) ([]diskroom.Need, error) {
		return []diskroom.Need{{Purpose: diskroom.Beside, Bytes: bytes}}, nil
	})
	switch {
	case fault.Has(err, fault.BackupStorageFull):
		return notNow(fmt.Sprintf("the server has no room: a drill of this moment needs %d MB beside the reserve", bytes/1e6))
	case err != nil && ctx.Err() == nil && limited.Err() != nil:
		return notNow("others need the room that there is")
	}
	return unknown(err)
}

// recover has the server back, and notes how long that takes.
func (p *proof) recover(ctx context.Context, m archive.Moment) (side *archive.Side, err error) {
	ctx, cancel := jobs.Within(ctx, "to have the database back as it was", p.x.Limits.Dump)
	defer cancel()
	side, err = p.x.Archive.Recover(ctx, m, func(stage string, _ int, _ command.Bytes) {
		if stage == recovery.Replaying && p.facts.Took.FetchMs == 0 {
			p.facts.Took.FetchMs = max(1, p.lap())
		}
		if stage == recovery.Fetching || stage == recovery.Replaying {
			p.run.at(drill.Stage(stage))
		}
	})
	p.facts.Took.ReplayMs = p.lap()
	if late := jobs.Overlong(ctx); err != nil && late != nil {
		return nil, unknown(late)
	}
	return side, err
}

// compare compares what was had back with what is known of the moment.
func (p *proof) compare(ctx context.Context, side *archive.Side) error {
	ctx, cancel := jobs.Within(ctx, "reading what was had back", p.x.Limits.Dump)
	defer cancel()
	err := p.compareWithin(ctx, side)
	if late := jobs.Overlong(ctx); err != nil && late != nil {
		return unknown(late)
	}
	return err
}

func (p *proof) compareWithin(ctx context.Context, side *archive.Side) error {
	looked, err := p.x.Marks.Look(ctx)
	if err != nil {
		return unknown(err)
	}
	p.facts.Database = side.Database
	m := drill.Marks{Of: p.run.of.DatabaseID}
	if m.Live, err = p.x.Marks.Of(ctx, m.Of); err != nil {
		return unknown(err)
	}
	if err := p.compareMarks(ctx, side, m); err != nil {
		return err
	}
	want, err := p.manifest(ctx)
	if err != nil {
		return unknown(err)
	}
	found, unlogged, err := p.read(ctx, side, want)
	if err != nil || want == nil {
		return err
	}
	return p.compareBackup(*want, found, unlogged, drill.Unchanged(m.Live, looked, want.CreatedAt.Add(-snapshotTime),
		later(p.run.of.At, want.WrittenAt)))
}

// snapshotTime is how much later than its snapshot a manifest may be begun.
const snapshotTime = time.Hour

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// compareMarks compares the ledger that was had back with that of the live server.
func (p *proof) compareMarks(ctx context.Context, side *archive.Side, m drill.Marks) error {
	at := p.run.of.At
	live, err := p.x.Marks.Last(ctx, at.Add(-drill.CommitTime))
	if err != nil {
		return unknown(err)
	}
	return side.Server.Admin(operation(p.run.of.ID), func(db *sql.DB) (err error) {
		const query = `SELECT current_setting('server_version'), current_setting('data_checksums') = 'on',
			pg_last_xact_replay_timestamp()`
		var replayed sql.NullTime
		row := db.QueryRowContext(ctx, query)
		if err := row.Scan(&p.facts.ServerVersion, &p.facts.Checksums, &replayed); err != nil {
			return err
		}
		if p.facts.ReplayedTo = replayed.Time.UTC(); replayed.Valid && replayed.Time.After(at) {
			return fmt.Errorf("what was had back is of a later time: a commit of %s was replayed", text(replayed.Time))
		}
		if m.Had, err = canary.Of(ctx, db, m.Of); err != nil {
			return err
		}
		if p.facts.Canaries = len(m.Had); len(m.Had) > 0 {
			p.facts.Canary = &m.Had[len(m.Had)-1]
		}
		if why := m.Compare(at); why != "" {
			return errors.New(why)
		}
		last, err := canary.Last(ctx, db, time.Now().AddDate(1, 0, 0))
		switch {
		case err != nil:
			return err
		case last.After(at):
			return fmt.Errorf("what was had back is of a later time: another database has the mark of %s", text(last))
		case last.Before(live):
			return fmt.Errorf("what was had back is of an earlier time: another database lacks the mark of %s", text(live))
		}
		return nil
	})
}

func text(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// manifest is that of the backup to compare with; nil where there is none.
func (p *proof) manifest(ctx context.Context) (*backup.Manifest, error) {
	q := p.run.of
	if q.Filename == "" {
		return nil, nil //nolint:nilnil // that there is none is no error
	}
	m, err := p.x.Files.Manifest(ctx, q.DatabaseID, q.Filename)
	switch {
	case fault.Has(err, fault.BackupNotFound): // it has expired meanwhile
		return nil, nil //nolint:nilnil // likewise
	case err != nil:
		return nil, fmt.Errorf("the manifest of %s: %w", q.Filename, err)
	case m.SHA256 != q.ManifestSHA256:
		return nil, fmt.Errorf("the manifest of %s is another one than was recorded", q.Filename)
	}
	p.facts.Backup = &drill.Reference{Filename: q.Filename, ManifestSHA256: m.SHA256, CreatedAt: m.CreatedAt}
	return &m.Manifest, nil
}

// read reads all of the database, and returns the names of the tables whose rows are not in WAL.
func (p *proof) read(
	ctx context.Context, side *archive.Side, m *backup.Manifest,
) (found backup.Contents, unlogged []string, err error) {
	op := operation(p.run.of.ID)
	err = side.Server.With(side.Database, op, func(db *sql.DB) (err error) {
		if found, err = content.Observe(ctx, db); err != nil {
			return err
		}
		var want backup.Contents
		if m != nil {
			want = m.Contents
		}
		if err := content.WantAll(ctx, db, &want); err != nil {
			return err
		}
		connect := func(ctx context.Context) (*pgconn.PgConn, error) { return side.Server.Connect(ctx, side.Database, op) }
		if err := content.Read(ctx, db, connect, want, &found, func(int64, int64) {}); err != nil {
			return err
		}
		if unlogged, err = content.Unlogged(ctx, db); err != nil {
			return err
		}
		c := drill.Contents{
			Tables: len(found.Rows), Unlogged: len(unlogged), LargeObjects: found.LargeObjects, Digest: drill.DigestOf(found),
		}
		for _, rows := range found.Rows {
			c.Rows += rows
		}
		err = db.QueryRowContext(ctx, "SELECT pg_database_size(current_database())").Scan(&c.Bytes)
		p.facts.Contents = c
		return err
	})
	return found, unlogged, err
}

// compareBackup holds what was read against a backup of an earlier moment. Positions of sequences are not compared: a replay goes
// beyond them. Where nothing was written between the two, nothing may differ.
func (p *proof) compareBackup(m backup.Manifest, found backup.Contents, unlogged []string, unchanged bool) error {
	m.Contents.Sequences, found.Sequences = nil, nil
	unlike, err := backup.Compare(m, found)
	if err != nil {
		return unknown(err)
	}
	unlike = slices.DeleteFunc(unlike, func(d backup.Difference) bool { return slices.Contains(unlogged, d.Object) })
	r := p.facts.Backup
	r.Unchanged, r.Differences = unchanged, len(unlike)
	for _, d := range unlike[:min(len(unlike), drill.MostDiffer)] {
		r.Differ = append(r.Differ, d.String())
	}
	if unchanged && len(unlike) > 0 {
		return fmt.Errorf("the database was not written to since the backup %s, and differs from it: %s", r.Filename,
			backup.Summary(unlike))
	}
	return nil
}
