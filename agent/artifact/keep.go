package artifact

import (
	"context"
	"database/sql"
	"slices"

	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/store"
)

// Keep reserves room, or changes what was reserved for the same claimant and purpose. It does not wait: BACKUP_STORAGE_FULL says
// that more is asked for than others leave, and changes nothing. The room is there over restarts of the agent and of PostgreSQL,
// until Release; or until its time, for whoever does not come back.
func (b *Backuper) Keep(ctx context.Context, k diskroom.Kept) error {
	return b.reservations.decideSynced(ctx, func(tx *sql.Tx) error {
		all, err := b.list(ctx, tx)
		if err != nil {
			return err
		}
		files, err := b.store.Disk()
		if err != nil {
			return err
		}
		spare, err := b.spare()
		if err != nil {
			return err
		}
		asks := diskroom.Reservation{
			Claimant: k.Claimant, Purpose: k.Purpose, Disk: diskroom.Disk(files.ID), Bytes: k.Bytes, Used: k.Used, Waiting: true,
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
func leaves(all []diskroom.Reservation, asks diskroom.Reservation, spare diskroom.Spare) bool {
	same := func(r diskroom.Reservation) bool { return r.Claimant == asks.Claimant && r.Purpose == asks.Purpose }
	if i := slices.IndexFunc(all, same); i >= 0 && all[i].Disk == asks.Disk && all[i].Bytes >= asks.Bytes {
		return true
	}
	if asks.Purpose == diskroom.Upload && diskroom.CrowdsOut(all, asks, spare) {
		return false
	}
	all = append(slices.DeleteFunc(all, same), asks)
	return diskroom.Decide(all, asks.Claimant, spare) == diskroom.Admitted
}

// Release ends what Keep has reserved for a claimant.
func (b *Backuper) Release(ctx context.Context, of diskroom.Claimant) error {
	return b.reservations.decideSynced(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM ledger.reservation WHERE operation_id = $1 AND kept_until IS NOT NULL`, string(of))
		return err
	})
}

// Ledger is the connection to what is reserved.
func (b *Backuper) Ledger() (*sql.DB, error) { return b.reservations.open() }
