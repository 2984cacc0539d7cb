package diskroom

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/lib/pq"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/id"
)

// Config says which disks there are, and how long others wait for room on them.
type Config struct {
	DataDir   string        // on the databases' disk, which must have room for copies; empty: no check
	RoomWait  time.Duration // how long a backup waits for room that others have; 0 means 10 min
	LookPause time.Duration // between two looks at the room that a piece of work uses; 0 means 1 s
	ReadyTime time.Duration // how long a restore's copy that is whole is safe from those that wait for room; 0 means 5 min
}

// Room is that of a server's disks, of which the rows of ledger.reservation are promised. A row of an operation that this process
// does not run means nothing, unless it is kept until a time that has not come, and is removed before the next decision: so what a
// crash, a failed removal or an upload that was given up leaves takes no room for long.
type Room struct {
	Config
	files *store.Store
	log   *zap.Logger
	open  func() (*sql.DB, error)

	mu      sync.Mutex
	running map[Claimant]bool
}

const (
	// reservationLock is the advisory lock of whoever decides.
	reservationLock = 7450018
	// reservationTime bounds one decision.
	reservationTime = 30 * time.Second
	// releaseTime bounds the removal of a reservation, for which a canceled backup's end waits.
	releaseTime = 5 * time.Second
	// session is the application_name of the one connection. It is of no operation.
	session = "pgherd-reservations"
	// notSynced has nothing wait for the disk: what a crash of PostgreSQL loses is asked for again. Keep and Release wait.
	notSynced = " -c synchronous_commit=off"
)

// New returns the room beside the files of a store.
func New(c Config, s *sessions.Server, files *store.Store, log *zap.Logger) *Room {
	c.RoomWait, c.LookPause = cmp.Or(c.RoomWait, 10*time.Minute), cmp.Or(c.LookPause, time.Second)
	c.ReadyTime = cmp.Or(c.ReadyTime, 5*time.Minute)
	return &Room{Config: c, files: files, log: log, running: map[Claimant]bool{}, open: sync.OnceValues(func() (*sql.DB, error) {
		db, err := s.OpenAs(session, s.Maintenance, notSynced)
		if err == nil {
			db.SetMaxOpenConns(1) // for short transactions of the few jobs of a server
			db.SetConnMaxIdleTime(reservationTime)
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

// Ledger is the connection to what is reserved.
func (x *Room) Ledger() (*sql.DB, error) { return x.open() }

// Forget removes what means nothing.
func (x *Room) Forget(ctx context.Context) error {
	return x.decide(ctx, func(*sql.Tx) error { return nil })
}

// TakeOver removes what a predecessor has reserved, of whose operations none runs any more. What is kept stays. That is on the disk
// of the backup files, whose number can be another one since the machine was started. A starting agent calls it when it has ended
// its predecessor's sessions.
func (x *Room) TakeOver(ctx context.Context) error {
	files, err := x.files.Disk()
	if err != nil {
		return err
	}
	return x.decide(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE ledger.reservation SET disk = $1 WHERE kept_until IS NOT NULL`, int64(files.ID))
		return err
	})
}

// begin and end say which operations run in this process.
func (x *Room) begin(c Claimant) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.running[c] = true
}

func (x *Room) end(c Claimant) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.running, c)
}

func (x *Room) operations() pq.StringArray {
	x.mu.Lock()
	defer x.mu.Unlock()
	names := make(pq.StringArray, 0, len(x.running))
	for c := range x.running {
		names = append(names, string(c))
	}
	return names
}

// decide runs fn, which sees and changes the reservations while nobody else does.
func (x *Room) decide(ctx context.Context, fn func(tx *sql.Tx) error) error {
	db, err := x.open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reservationTime)
	defer cancel()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("reservations: %w", err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, reservationLock); err != nil {
		return fmt.Errorf("reservations: %w", err)
	}
	// Whoever has a row began before this process got the lock.
	const forget = `DELETE FROM ledger.reservation
		WHERE kept_until IS NULL AND operation_id <> ALL ($1) OR kept_until <= clock_timestamp()`
	if _, err := tx.ExecContext(ctx, forget, x.operations()); err != nil {
		return fmt.Errorf("reservations: %w", err)
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// decideSynced is decide that returns when what was decided outlives a crash of PostgreSQL.
func (x *Room) decideSynced(ctx context.Context, fn func(tx *sql.Tx) error) error {
	return x.decide(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `SET LOCAL synchronous_commit = on`); err != nil {
			return fmt.Errorf("reservations: %w", err)
		}
		return fn(tx)
	})
}

// put writes a reservation. One that waits keeps its place, and one that is admitted its time.
func put(ctx context.Context, tx *sql.Tx, r Reservation) error {
	var account sql.NullString
	if r.Lasting != nil {
		account = sql.NullString{String: string(r.Lasting.Account), Valid: true}
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO ledger.reservation AS r
		(operation_id, purpose, disk, bytes, used, waiting, account_id) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (operation_id, purpose) DO UPDATE SET disk = excluded.disk, bytes = excluded.bytes,
			used = excluded.used, waiting = excluded.waiting`,
		string(r.Claimant), string(r.Purpose), int64(r.Disk), r.Bytes, r.Used, r.Waiting, account)
	if err != nil {
		return fmt.Errorf("write a reservation: %w", err)
	}
	return nil
}

// list reads all reservations, in the order in which they came. Before them are the copies that are ready.
func (x *Room) list(ctx context.Context, q pg.Querier) (all []Reservation, err error) {
	all, err = x.readyCopies(ctx, q)
	if err != nil {
		return nil, err
	}
	const query = `SELECT operation_id, purpose, disk, bytes, used, waiting, account_id FROM ledger.reservation
		WHERE kept_until IS NULL OR kept_until > clock_timestamp() ORDER BY since, operation_id, purpose`
	err = pg.Read(ctx, q, "reservations", query, func(rows *sql.Rows) error {
		var r Reservation
		var account sql.NullString
		err := rows.Scan(&r.Claimant, &r.Purpose, &r.Disk, &r.Bytes, &r.Used, &r.Waiting, &account)
		if account.Valid {
			r.Lasting = &Lasting{Account: id.AccountID(account.String)}
		}
		all = append(all, r)
		return err
	})
	return all, err
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
	db, err := x.open()
	if err != nil {
		return err
	}
	all, err := x.list(ctx, db)
	if err != nil {
		return err
	}
	files, err := x.files.Disk()
	if err != nil {
		return err
	}
	asks := Reservation{Purpose: Dump, Disk: Disk(files.ID), Bytes: DumpSize(database), Waiting: true}
	if Decide(append(all, asks), asks.Claimant, Spare{asks.Disk: files.Free}) == Full {
		return store.ErrFull
	}
	return nil
}
