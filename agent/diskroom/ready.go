package diskroom

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/pg"
)

// A copy that is ready takes its room until its operation puts it in the place of the database, or is closed. How long that takes
// is the customer's choice, and others may wait for the room, or for the account's share of it. So one that has been ready for
// Config.ReadyTime gives way to whoever waits: its operation has no copy any more, and the sweep drops it.

// readyCopies are as reservations, the one that has been ready longest first. One whose load has not returned yet has its own.
func (x *Room) readyCopies(ctx context.Context, q pg.Querier, held []Reservation) (all []Reservation, err error) {
	_, data, err := x.Disks()
	if err != nil {
		return nil, err
	}
	query := fmt.Sprintf(`SELECT operation_id, (ready ->> 'sizeBytes')::bigint, coalesce(account_id, ''), `+givesWay+`
		FROM ledger.copy WHERE ready IS NOT NULL AND replaced IS NULL ORDER BY ready_at, operation_id`, x.ReadyTime.Seconds())
	err = pg.Read(ctx, q, "copies that are ready", query, func(rows *sql.Rows) error {
		r := Reservation{Purpose: Copy, Disk: Disk(data.ID), Lasting: &Lasting{}}
		err := rows.Scan(&r.Claimant, &r.Bytes, &r.Lasting.Account, &r.Lasting.Idle)
		if r.Used = r.Bytes; !slices.ContainsFunc(held, func(h Reservation) bool { return h.is(r.Claimant, Copy) }) {
			all = append(all, r)
		}
		return err
	})
	return all, err
}

// restoring is the purpose of the copies that are to become databases.
const restoring = "restore"

// givesWay is whether a copy may be given up, which is not once its switch has begun.
const givesWay = `(until_closed AND reopen IS NULL AND replaced IS NULL
	AND coalesce(ready_at < clock_timestamp() - %f * interval '1 second', true))`

// makeWay gives up a copy for one who waits, unless one is being dropped already.
func (x *Room) makeWay(
	ctx context.Context, db *sql.DB, all []Reservation, asks Claimant, spare Spare,
) error {
	whose, found := GivesWay(all, asks, spare)
	if !found {
		return nil
	}
	done, err := db.ExecContext(ctx, fmt.Sprintf(`UPDATE ledger.copy SET until_closed = false
		WHERE operation_id = $1 AND purpose = $2 AND `+givesWay+` AND NOT EXISTS (
			SELECT FROM ledger.copy WHERE purpose = $2 AND ready IS NOT NULL AND NOT until_closed AND replaced IS NULL)`,
		x.ReadyTime.Seconds()), string(whose), restoring)
	if err != nil {
		return fmt.Errorf("give up a copy: %w", err)
	}
	if n, _ := done.RowsAffected(); n > 0 { // PostgreSQL always tells
		x.log.Info("a copy that was ready gives way", zap.String("operationId", string(whose)), zap.String("to", string(asks)))
	}
	return nil
}
