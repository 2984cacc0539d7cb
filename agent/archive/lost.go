package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// Lost is a server that is gone, whose archive another server's agent reads.
type Lost struct {
	Installation string
	Storage      string // see Place
	Passphrase   string
}

// lostArchive is the archive of a server that is gone. It has no journal, and no server whose ledger could be read: which
// database of PostgreSQL each database was is found out once, by a server beside that has the ledger alone.
type lostArchive struct {
	*Archive // with the place, the engine and the copies of the server that is gone
	span     Span

	mu    sync.Mutex
	known map[id.DatabaseID]uint32 // nil until it was looked for
}

// LostUntil is how far the archive of a server that is gone reaches, for the error of which an operator is told what is wrong.
func (a *Archive) LostUntil(ctx context.Context, l Lost) (time.Time, error) {
	x, err := a.openLost(ctx, l)
	if err != nil {
		return time.Time{}, err
	}
	return x.span.To, nil
}

// openLost opens the archive of a server that is gone. What was found out about its databases is kept as long as nothing was
// added.
func (a *Archive) openLost(ctx context.Context, l Lost) (*lostArchive, error) {
	a.mu.Lock()
	place := a.place
	a.mu.Unlock()
	if place.DataDir == "" {
		return nil, a.asAway(errors.New("the archive of this server is not ready"))
	}
	place.Installation, place.Storage, place.Passphrase, place.lost = l.Installation, l.Storage, l.Passphrase, true
	engine, err := a.Open(place)
	if err != nil {
		return nil, err
	}
	has, err := holdingsOf(ctx, engine)
	if err != nil {
		return nil, a.asFound(engine, err)
	}
	place.segmentSize = has.size // it need not be this server's
	list := has.spans()
	if len(list) == 0 {
		return nil, fault.New(fault.PointNotRecoverable, "there is no archive of the server %s, or no copy in it that is whole",
			l.Installation)
	}
	span := list[len(list)-1]
	a.mu.Lock()
	defer a.mu.Unlock()
	if had := a.lost[l]; had != nil && had.span == span {
		return had, nil
	}
	x := &lostArchive{Archive: &Archive{
		Config: a.Config, journal: &journal{list: has.stored}, engine: engine, place: place, line: has.line,
		backups: has.backups,
	}, span: span}
	if a.lost == nil {
		a.lost = map[Lost]*lostArchive{}
	}
	a.lost[l] = x
	return x, nil
}

// RecoverLost has a database back as it was last, out of the archive of a server that is gone, as Recover does; asOf is the time
// of the last commit that the archive has, of whatever database. DATABASE_NOT_FOUND: the archive does not have the database.
func (a *Archive) RecoverLost(ctx context.Context, l Lost, m Moment, tell jobs.Tell) (side *Side, asOf time.Time, err error) {
	release, err := a.takeSide(ctx, tell)
	if err != nil {
		return nil, asOf, err
	}
	if side, asOf, err = a.recoverLost(ctx, l, m, tell); err != nil {
		release()
		return nil, asOf, err
	}
	side.release = release
	return side, asOf, nil
}

func (a *Archive) recoverLost(ctx context.Context, l Lost, m Moment, tell jobs.Tell) (side *Side, asOf time.Time, err error) {
	tell(recovery.Fetching, 0, command.Bytes{})
	x, err := a.openLost(ctx, l)
	if err != nil {
		return nil, asOf, err
	}
	oids, err := x.databases(ctx, m.OperationID)
	if err != nil {
		return nil, asOf, err
	}
	oid, known := oids[m.DatabaseID]
	if !known {
		return nil, asOf, fault.New(fault.DatabaseNotFound, "the archive of the server that is gone does not have the database")
	}
	if side, err = x.last(ctx, m, []uint32{oid}, tell); err != nil {
		return nil, asOf, err
	}
	if asOf, err = side.lastCommit(ctx, x.span.From); err != nil {
		return nil, asOf, errors.Join(err, side.Close())
	}
	return side, asOf, nil
}

// databases is which database of PostgreSQL each database was last.
func (x *lostArchive) databases(ctx context.Context, op id.OperationID) (map[id.DatabaseID]uint32, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.known != nil {
		return x.known, nil
	}
	side, err := x.last(ctx, Moment{OperationID: op}, nil, func(string, int, command.Bytes) {})
	if err != nil {
		return nil, err
	}
	known := map[id.DatabaseID]uint32{}
	err = side.Server.Admin(op, func(db *sql.DB) error {
		return pg.Each(ctx, db, func(rows *sql.Rows) error {
			var of id.DatabaseID
			var oid uint32
			err := rows.Scan(&of, &oid)
			known[of] = oid
			return err
		}, "SELECT l.id, p.oid FROM ledger.database l JOIN pg_database p ON p.oid = l.oid")
	})
	if err = errors.Join(err, side.Close()); err != nil {
		return nil, err
	}
	x.known = known
	return known, nil
}

// last has the server back as it was last, with these databases of it. The caller closes it.
func (x *lostArchive) last(ctx context.Context, m Moment, oids []uint32, tell jobs.Tell) (*Side, error) {
	maintenance, err := x.engine.Database(ctx, x.span.Backup, x.Server.Maintenance)
	if err != nil {
		return nil, x.asFound(x.engine, err)
	}
	side := &Side{archive: x.Archive, dir: x.sideOf(m.OperationID), moment: m, oids: oids, span: x.span, maintenance: maintenance}
	if err := side.fetch(ctx, x.engine); err != nil {
		return nil, errors.Join(x.asFound(x.engine, err), side.remove())
	}
	tell(recovery.Replaying, 0, command.Bytes{})
	err = side.replay(ctx, tell)
	if err == nil && side.replayed < x.span.Last { // to PostgreSQL, a segment that could not be got is the end of the archive
		err = fmt.Errorf("of the archive of %s only what is up to %s was replayed, and not up to %s", x.place.Installation,
			side.replayed, x.span.Last)
	}
	if err != nil {
		return nil, errors.Join(err, side.Close())
	}
	return side, nil
}

// lastCommit is the time of the last commit that was replayed; otherwise, where there was none.
func (s *Side) lastCommit(ctx context.Context, otherwise time.Time) (at time.Time, err error) {
	err = s.Server.Admin(s.moment.OperationID, func(db *sql.DB) error {
		at, err = pg.One[time.Time](ctx, db, "SELECT coalesce(pg_last_xact_replay_timestamp(), $1)", otherwise)
		return err
	})
	return at.UTC(), err
}

// RoomLost is Room for RecoverLost: size is that of the database as it was last known.
func (a *Archive) RoomLost(ctx context.Context, l Lost, size int64) (int64, error) {
	x, err := a.openLost(ctx, l)
	if err != nil {
		return 0, err
	}
	return x.besideOf(x.span, size), nil
}

// besideOf is how many bytes a server beside may take that is replayed from a span's beginning to its end.
func (a *Archive) besideOf(s Span, size int64) int64 {
	_, _, segment := a.kept()
	replayed := int64(s.Last.number(segment)-s.First.number(segment)+1) * segment
	return size + replayed + besides
}

// Lost reports whether the server is gone, and it is another one's agent that reads the archive.
func (p Place) Lost() bool { return p.lost }

// Folder is that of an engine's own files for a server: those of servers that are gone are apart.
func (p Place) Folder() string {
	if p.lost {
		return "lost-" + p.Installation
	}
	return "pgbackrest"
}
