package diskroom

import (
	"context"
	"database/sql"
	"slices"
	"time"

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

// Keep reserves room, or changes what was reserved for the same claimant and purpose. It does not wait: BACKUP_STORAGE_FULL says
// that more is asked for than others leave, and changes nothing. The room is there over restarts of the agent and of PostgreSQL,
// until Release; or until its time, for whoever does not come back.
func (x *Room) Keep(ctx context.Context, k Kept) error {
	return x.decideSynced(ctx, func(tx *sql.Tx) error {
		all, err := x.list(ctx, tx)
		if err != nil {
			return err
		}
		files, err := x.files.Disk()
		if err != nil {
			return err
		}
		spare, err := x.spare()
		if err != nil {
			return err
		}
		asks := Reservation{
			Claimant: k.Claimant, Purpose: k.Purpose, Disk: Disk(files.ID), Bytes: k.Bytes, Used: k.Used, Waiting: true,
		}
		if !leaves(all, asks, spare) {
			return store.ErrFull
		}
		asks.Waiting = false
		if err := put(ctx, tx, asks); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE ledger.reservation SET kept_until = $3 WHERE operation_id = $1 AND purpose = $2`,
			string(k.Claimant), string(k.Purpose), k.Until)
		return err
	})
}

// leaves reports whether all others leave the room that is asked for, those that wait for theirs too, and whether it leaves them
// enough. Whoever asks for no more than was reserved has it.
func leaves(all []Reservation, asks Reservation, spare Spare) bool {
	same := func(r Reservation) bool { return r.Claimant == asks.Claimant && r.Purpose == asks.Purpose }
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
	return x.decideSynced(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM ledger.reservation WHERE operation_id = $1 AND kept_until IS NOT NULL`, string(of))
		return err
	})
}
