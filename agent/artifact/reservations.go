package artifact

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/core/id"
)

// reservations are the rows of ledger.reservation. A row of an operation that this process does not run means nothing, unless it
// is kept until a time that has not come, and is removed before the next decision: so what a crash, a failed removal or an upload
// that was given up leaves takes no room for long.
type reservations struct {
	open func() (*sql.DB, error)

	mu      sync.Mutex
	running map[id.OperationID]bool
}

const (
	// reservationLock is the advisory lock of whoever decides.
	reservationLock = 7450018
	// reservationTime bounds one decision.
	reservationTime = 30 * time.Second
	// releaseTime bounds the removal of a reservation, for which a canceled backup's end waits.
	releaseTime = 5 * time.Second
)

func newReservations(c Config) *reservations {
	return &reservations{running: map[id.OperationID]bool{}, open: sync.OnceValues(func() (*sql.DB, error) {
		db, err := c.openAs(reservationSession, c.Maintenance, notSynced)
		if err == nil {
			db.SetMaxOpenConns(1) // for short transactions of the few jobs of a server
			db.SetConnMaxIdleTime(reservationTime)
		}
		return db, err
	})}
}

// reservationSession is the application_name of the one connection. It is of no backup.
const reservationSession = "pgherd-reservations"

// notSynced has nothing wait for the disk: what a crash of PostgreSQL loses is asked for again. Keep and Release wait.
const notSynced = " -c synchronous_commit=off"

// forget removes what means nothing, such as what a predecessor reserved.
func (r *reservations) forget(ctx context.Context) error {
	return r.decide(ctx, func(*sql.Tx) error { return nil })
}

// takeOver is forget at the start of an agent. What is kept is on the disk of the backup files, whose number can be another one
// since the machine was started.
func (r *reservations) takeOver(ctx context.Context, files diskroom.Disk) error {
	return r.decide(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE ledger.reservation SET disk = $1 WHERE kept_until IS NOT NULL`, int64(files))
		return err
	})
}

func (r *reservations) close() error {
	db, err := r.open()
	if err != nil {
		return err
	}
	return db.Close()
}

// begin and end say which operations run in this process.
func (r *reservations) begin(op id.OperationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[op] = true
}

func (r *reservations) end(op id.OperationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, op)
}

func (r *reservations) operations() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make([]string, 0, len(r.running))
	for op := range r.running {
		names = append(names, string(op))
	}
	return names
}

// decide runs fn, which sees and changes the reservations while nobody else does.
func (r *reservations) decide(ctx context.Context, fn func(tx *sql.Tx) error) error {
	db, err := r.open()
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
	if _, err := tx.ExecContext(ctx, forget, pq.Array(r.operations())); err != nil {
		return fmt.Errorf("reservations: %w", err)
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// decideSynced is decide that returns when what was decided outlives a crash of PostgreSQL.
func (r *reservations) decideSynced(ctx context.Context, fn func(tx *sql.Tx) error) error {
	return r.decide(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `SET LOCAL synchronous_commit = on`); err != nil {
			return fmt.Errorf("reservations: %w", err)
		}
		return fn(tx)
	})
}

// put writes a reservation. One that waits keeps its place, and one that is admitted its time.
func put(ctx context.Context, tx execer, r diskroom.Reservation) error {
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

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// list reads all reservations, in the order in which they came. Before them are the copies that are ready.
func (b *Backuper) list(ctx context.Context, q querier) (all []diskroom.Reservation, err error) {
	all, err = b.readyCopies(ctx, q)
	if err != nil {
		return nil, err
	}
	const query = `SELECT operation_id, purpose, disk, bytes, used, waiting, account_id FROM ledger.reservation
		WHERE kept_until IS NULL OR kept_until > clock_timestamp() ORDER BY since, operation_id, purpose`
	err = each(ctx, q, "reservations", query, func(rows *sql.Rows) error {
		var r diskroom.Reservation
		var account sql.NullString
		err := rows.Scan(&r.Claimant, &r.Purpose, &r.Disk, &r.Bytes, &r.Used, &r.Waiting, &account)
		if account.Valid {
			r.Lasting = &diskroom.Lasting{Account: id.AccountID(account.String)}
		}
		all = append(all, r)
		return err
	})
	return all, err
}

// remove ends reservations of a claimant: of one purpose, or of all where that is empty.
func (r *reservations) remove(ctx context.Context, of diskroom.Claimant, purpose diskroom.Purpose) error {
	db, err := r.open()
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `DELETE FROM ledger.reservation WHERE operation_id = $1 AND $2 IN ('', purpose)`,
		string(of), string(purpose))
	return err
}
