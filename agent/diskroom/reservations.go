package diskroom

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/locks"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/agent/store"
)

// Config says which disks there are, and how long others wait for room on them.
type Config struct {
	DataDir   string        // on the databases' disk, which must have room for copies; empty: no check
	RoomWait  time.Duration // how long a backup waits for room that others have; 0 means 10 min
	LookPause time.Duration // between two looks at the room that a piece of work uses; 0 means 1 s
	ReadyTime time.Duration // how long a restore's copy that is whole is safe from those that wait for room; 0 means 5 min
}

// Room is that of a server's disks. What operations have reserved of it is known to the process that runs them, and ends with it.
// What is kept for uploads is in the ledger.
type Room struct {
	Config
	files *store.Store
	log   *zap.Logger
	open  func() (*sql.DB, error)

	deciding locks.Locks
	mu       sync.Mutex
	held     []Reservation // of operations, in the order in which they came
}

// decisionTime bounds one decision.
const decisionTime = 30 * time.Second

// session is the application_name of the one connection. It is of no operation.
const session = "pgherd-reservations"

// New returns the room beside the files of a store.
func New(c Config, s *sessions.Server, files *store.Store, log *zap.Logger) *Room {
	c.RoomWait, c.LookPause = cmp.Or(c.RoomWait, 10*time.Minute), cmp.Or(c.LookPause, time.Second)
	c.ReadyTime = cmp.Or(c.ReadyTime, 5*time.Minute)
	return &Room{Config: c, files: files, log: log, open: sync.OnceValues(func() (*sql.DB, error) {
		db, err := s.OpenAs(session, s.Maintenance, "")
		if err == nil {
			db.SetMaxOpenConns(1) // for short statements of the few jobs of a server
			db.SetConnMaxIdleTime(decisionTime)
		}
		return db, err
	})}
}

// Close closes the connection.
func (x *Room) Close() error {
	db, err := x.open()
	if err != nil {
		return err
	}
	return db.Close()
}

// Ledger is the connection to what is kept.
func (x *Room) Ledger() (*sql.DB, error) { return x.open() }

// decide runs fn on all reservations while nobody else decides.
func (x *Room) decide(ctx context.Context, fn func(db *sql.DB, all []Reservation, spare Spare) error) error {
	done, err := x.deciding.Take(ctx, "room")
	if err != nil {
		return err
	}
	defer done()
	db, err := x.open()
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, decisionTime)
	defer cancel()
	all, err := x.list(limited, db)
	if err != nil {
		return err
	}
	spare, err := x.spare() // read last: it may lack more than is counted as used, and never less
	if err != nil {
		return err
	}
	return fn(db, all, spare)
}

func (r Reservation) is(of Claimant, purpose Purpose) bool {
	return r.Claimant == of && r.Purpose == purpose
}

// put reserves room, or changes what is reserved. One that waits keeps its place.
func (x *Room) put(r Reservation) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.IndexFunc(x.held, func(h Reservation) bool { return h.is(r.Claimant, r.Purpose) })
	if i < 0 {
		x.held = append(x.held, r)
		return
	}
	x.held[i] = r
}

// remove ends reservations of a claimant: of one purpose, or of all where that is empty.
func (x *Room) remove(of Claimant, purpose Purpose) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.held = slices.DeleteFunc(x.held, func(h Reservation) bool {
		return h.Claimant == of && (purpose == "" || h.Purpose == purpose)
	})
}

func (x *Room) reserved() []Reservation {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.held)
}

// list reads all reservations, in the order in which they came. Before them are the copies that are ready, and what is kept.
func (x *Room) list(ctx context.Context, q pg.Querier) (all []Reservation, err error) {
	held := x.reserved()
	all, err = x.readyCopies(ctx, q, held)
	if err != nil {
		return nil, err
	}
	kept, err := x.kept(ctx, q)
	return slices.Concat(all, kept, held), err
}

// Disks are those of the backup files and of the databases.
func (x *Room) Disks() (files, data store.Disk, err error) {
	if files, err = x.files.Disk(); err != nil || x.DataDir == "" {
		return files, store.Unseen, err
	}
	data, err = x.files.DiskAt(x.DataDir)
	return files, data, err
}

func (x *Room) spare() (Spare, error) {
	files, data, err := x.Disks()
	return Spare{Disk(files.ID): files.Free, Disk(data.ID): data.Free}, err
}

// SizeOf is the size of a database on disk.
func (x *Room) SizeOf(ctx context.Context, database string) (size int64, err error) {
	db, err := x.open()
	if err != nil {
		return 0, err
	}
	if size, err = pg.One[int64](ctx, db, `SELECT pg_database_size($1::name)`, database); err != nil {
		return 0, fmt.Errorf("size of the database: %w", err)
	}
	return size, nil
}

// HasRoom returns BACKUP_STORAGE_FULL if a dump of a database of this size had no room even if no other were made.
func (x *Room) HasRoom(ctx context.Context, database int64) error {
	return x.decide(ctx, func(_ *sql.DB, all []Reservation, spare Spare) error {
		files, err := x.files.Disk()
		if err != nil {
			return err
		}
		asks := Reservation{Purpose: Dump, Disk: Disk(files.ID), Bytes: DumpSize(database), Waiting: true}
		if Decide(append(all, asks), asks.Claimant, spare) == Full {
			return store.ErrFull
		}
		return nil
	})
}
