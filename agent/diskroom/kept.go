package diskroom

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/store"
)

// Kept is room on the disk of the backup files for something that no operation does yet, such as an upload between two requests.
type Kept struct {
	Claimant Claimant
	Purpose  Purpose
	Bytes    int64 // in all
	Used     int64 // of them, by what is written already
	Until    time.Time
}

// kept are the reservations of what is kept.
func (x *Room) kept(ctx context.Context, q pg.Querier) (all []Reservation, err error) {
	files, err := x.files.Disk()
	if err != nil {
		return nil, err
	}
	const query = `SELECT claimant, purpose, bytes, used FROM ledger.reservation
		WHERE kept_until > clock_timestamp() ORDER BY since, claimant, purpose`
	err = pg.Read(ctx, q, "reservations", query, func(rows *sql.Rows) error {
		r := Reservation{Disk: Disk(files.ID)}
		err := rows.Scan(&r.Claimant, &r.Purpose, &r.Bytes, &r.Used)
		all = append(all, r)
		return err
	})
	return all, err
}

// Forget removes what was kept until a time that has come.
func (x *Room) Forget(ctx context.Context) error {
	return x.write(ctx, `DELETE FROM ledger.reservation WHERE kept_until <= clock_timestamp()`)
}

func (x *Room) write(ctx context.Context, statement string, args ...any) error {
	db, err := x.open()
	if err == nil {
		_, err = db.ExecContext(ctx, statement, args...)
	}
	if err != nil {
		return fmt.Errorf("reservations: %w", err)
	}
	return nil
}

// Keep reserves room, or changes what was reserved for the same claimant and purpose. It does not wait: BACKUP_STORAGE_FULL says
// that more is asked for than others leave, and changes nothing. The room is there over restarts of the agent and of PostgreSQL,
// until Release; or until its time, for whoever does not come back.
func (x *Room) Keep(ctx context.Context, k Kept) error {
	return x.decide(ctx, func(_ *sql.DB, all []Reservation, spare Spare) error {
		files, err := x.files.Disk()
		if err != nil {
			return err
		}
		asks := Reservation{
			Claimant: k.Claimant, Purpose: k.Purpose, Disk: Disk(files.ID), Bytes: k.Bytes, Used: k.Used, Waiting: true,
		}
		if !leaves(all, asks, spare) {
			return store.ErrFull
		}
		return x.write(ctx, `INSERT INTO ledger.reservation (claimant, purpose, bytes, used, kept_until) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (claimant, purpose) DO UPDATE
			SET bytes = excluded.bytes, used = excluded.used, kept_until = excluded.kept_until`,
			string(k.Claimant), string(k.Purpose), k.Bytes, k.Used, k.Until)
	})
}

// leaves reports whether all others leave the room that is asked for, those that wait for theirs too, and whether it leaves them
// enough. Whoever asks for no more than was reserved has it.
func leaves(all []Reservation, asks Reservation, spare Spare) bool {
	same := func(r Reservation) bool { return r.is(asks.Claimant, asks.Purpose) }
	if i := slices.IndexFunc(all, same); i >= 0 && all[i].Disk == asks.Disk && all[i].Bytes >= asks.Bytes {
		return true
	}
	if asks.Purpose == Upload && CrowdsOut(all, asks, spare) {
		return false
	}
	all = append(slices.DeleteFunc(all, same), asks)
	return Decide(all, asks.Claimant, spare) == Admitted
}

// Release ends what Keep has reserved for a claimant.
func (x *Room) Release(ctx context.Context, of Claimant) error {
	return x.write(ctx, `DELETE FROM ledger.reservation WHERE claimant = $1`, string(of))
}

// An upload has its room from its announcement on, whether anything comes or not, and can be announced again and again. So all
// uploads together take at most half of what there is of a disk when nothing else is made: backups have the other half.

// CrowdsOut reports whether the uploads on a disk would take more than that if one had what it asks for.
func CrowdsOut(all []Reservation, asks Reservation, spare Spare) bool {
	bytes := max(asks.Bytes, asks.Used)
	for _, r := range all {
		if r.Purpose == Upload && r.Disk == asks.Disk && r.Claimant != asks.Claimant {
			bytes += max(r.Bytes, r.Used)
		}
	}
	return bytes > spare.share(all, asks.Disk)
}
