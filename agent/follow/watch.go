package follow

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/id"
)

// A slot has PostgreSQL keep its log, of all databases, until somebody has read it. So none may outlive its operation, and each
// is bounded. The agent looks again and again; while there is no agent, PostgreSQL itself drops what is behind by
// max_slot_wal_keep_size, which agent init sets.

const (
	watchPause = 5 * time.Second
	// silence is how long an operation that nobody speaks of any more may have changes kept.
	silence = 24 * time.Hour
	// leastKept of the log is kept for a slot, and otherwise a quarter of what is free with it.
	leastKept = 1 << 30
)

// Run watches what is kept, until ctx ends.
func (s *Source) Run(ctx context.Context) {
	const failed = "what is kept of databases that move is not watched"
	loop.Run(ctx, s.log, nil, failed, func(ctx context.Context) (time.Duration, error) { return watchPause, s.Look(ctx) })
}

// Look drops what is not to be kept any more.
func (s *Source) Look(ctx context.Context) error {
	over, err := pg.Column(ctx, s.db, `SELECT f.operation_id FROM ledger.followed f WHERE NOT EXISTS (SELECT FROM ledger.operation o
		WHERE o.id = f.operation_id AND NOT o.closed AND o.spoken_at > now() - $1 * interval '1 second')`, silence.Seconds())
	for _, op := range over {
		s.log.Warn("the changes of a database are kept for nobody any more", zap.String("operationId", op))
		err = errors.Join(err, s.Drop(ctx, id.OperationID(op)))
	}
	return errors.Join(err, s.dropUnknown(ctx), s.bound(ctx))
}

// dropUnknown drops slots of ours that the ledger does not know.
func (s *Source) dropUnknown(ctx context.Context) error {
	const unknown = `SELECT substr(s.slot_name, length($1) + 1)::uuid::text FROM pg_replication_slots s
		WHERE s.slot_name ~ ('^' || $1 || '[0-9a-f]{32}$')
			AND NOT EXISTS (SELECT FROM ledger.followed f WHERE $1 || replace(f.operation_id, '-', '') = s.slot_name)`
	list, err := pg.Column(ctx, s.db, unknown, setup.MovePrefix)
	for _, op := range list {
		s.log.Warn("a replication slot is of no operation that the ledger knows, and is dropped", zap.String("operationId", op))
		err = errors.Join(err, s.dropSlot(ctx, id.OperationID(op)))
	}
	return err
}

// slot is one that keeps the log for an operation.
type slot struct {
	op               id.OperationID
	database, status string
	kept             int64
}

// slots are those that count. One that is being made does: it waits for whoever has a transaction open on the server, and keeps
// the log from the beginning.
func (s *Source) slots(ctx context.Context) (all []slot, err error) {
	const query = `SELECT f.operation_id, d.name, coalesce(s.wal_status, 'lost'),
			coalesce(pg_current_wal_lsn() - s.restart_lsn, 0)::bigint
		FROM ledger.followed f JOIN ledger.database d ON d.id = f.database_id
			LEFT JOIN pg_replication_slots s ON s.slot_name = $1 || replace(f.operation_id, '-', '')
		WHERE (f.schema IS NOT NULL OR s.restart_lsn IS NOT NULL) AND f.why = '' ORDER BY 1`
	err = pg.Each(ctx, s.db, func(rows *sql.Rows) error {
		var one slot
		err := rows.Scan(&one.op, &one.database, &one.status, &one.kept)
		all = append(all, one)
		return err
	}, query, setup.MovePrefix)
	return all, err
}

// bound gives up what must not be kept any longer.
func (s *Source) bound(ctx context.Context) error {
	all, err := s.slots(ctx)
	for _, one := range all {
		var why string
		switch most := s.most(one.kept); {
		case one.status == "lost":
			why = "PostgreSQL does not have the changes of the database any more: the other server was too far behind"
		case one.kept > most:
			why = fmt.Sprintf("the changes of the server took %d MiB, more than is kept for a database that moves: "+
				"the other server was too far behind", one.kept>>20)
		default:
			why, err = s.unwritable(ctx, one.database, err)
		}
		if why != "" {
			err = errors.Join(err, s.giveUp(ctx, one.op, why))
		}
	}
	return err
}

// most is how much of the log is kept for a slot that keeps so much.
func (s *Source) most(kept int64) int64 {
	free, err := s.free()
	if err != nil {
		return leastKept
	}
	return max(leastKept, (free+kept)/4)
}

// unwritable says why the owner cannot change a table that is published, where that is so: rows of one that has lost what tells
// them apart can be neither updated nor deleted while it is followed. It adds an error of its own to another one.
func (s *Source) unwritable(ctx context.Context, database string, before error) (why string, err error) {
	const query = `SELECT format('%I.%I', n.nspname, c.relname) FROM pg_publication_rel r
			JOIN pg_publication p ON p.oid = r.prpubid AND p.pubname ~ '^move_[0-9a-f]{32}$' AND p.pubowner = current_user::regrole
			JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r' AND NOT CASE c.relreplident WHEN 'f' THEN true WHEN 'n' THEN false
			WHEN 'd' THEN EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary AND indimmediate AND indisvalid)
			ELSE EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisreplident AND indisvalid) END LIMIT 1`
	var found []string
	err = s.inside(ctx, database, func(db *sql.DB) (err error) {
		found, err = pg.Column(ctx, db, query)
		return err
	})
	if len(found) > 0 {
		why = "table " + found[0] + " has lost what tells its rows apart, such as its primary key"
	}
	return why, errors.Join(before, err)
}

// giveUp ends what is kept for an operation, and says why to who asks.
func (s *Source) giveUp(ctx context.Context, op id.OperationID, why string) error {
	s.log.Warn("the changes of a database are not kept any longer", zap.String("operationId", string(op)), zap.String("why", why))
	noted := "UPDATE ledger.followed SET why = " + pg.Quote(why) + " WHERE operation_id = " + pg.Quote(string(op))
	if err := pg.Atomically(ctx, s.db, noted); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dropTime)
	defer cancel()
	return s.end(ctx, op)
}
