package follow

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
)

//go:embed movable.sql
var readObstacles string

// movableTime bounds the look at one database.
const movableTime = 30 * time.Second

// Movable answers what is in the way of following a database.
func (s *Source) Movable(ctx context.Context, q command.AskMovable) (found command.Movable, err error) {
	ctx, cancel := context.WithTimeout(ctx, movableTime)
	defer cancel()
	d, err := s.ledger.InService(ctx, string(q.DatabaseID))
	if err != nil {
		return found, err
	}
	found.Obstacles = []command.Obstacle{}
	why, err := s.NotLogical(ctx)
	if err != nil {
		return found, err
	}
	if why != "" {
		found.Obstacles = append(found.Obstacles, command.Obstacle{Kind: command.NotLogical, Object: why})
	}
	err = s.inside(ctx, d.Name, func(db *sql.DB) error {
		if err := obstacles(ctx, db, &found); err != nil {
			return err
		}
		mark, err := schemaOf(ctx, db, "")
		if err == nil {
			found.SchemaSHA256, err = tellingOf(mark)
		}
		return err
	})
	if err != nil {
		return found, fmt.Errorf("what is in the way of a move: %w", err)
	}
	if more := len(found.Obstacles) - command.MostObstacles; more > 0 {
		found.Obstacles, found.More = found.Obstacles[:command.MostObstacles], found.More+more
	}
	return found, nil
}

func obstacles(ctx context.Context, db *sql.DB, found *command.Movable) (err error) {
	if found.SizeBytes, err = pg.One[int64](ctx, db, "SELECT pg_database_size(current_database())"); err != nil {
		return err
	}
	listed, all := 0, 0
	err = pg.Each(ctx, db, func(rows *sql.Rows) error {
		var o command.Obstacle
		err := rows.Scan(&o.Kind, &o.Object, &all)
		found.Obstacles = append(found.Obstacles, o)
		listed++
		return err
	}, readObstacles, command.MostObstacles)
	if err != nil {
		return err
	}
	found.More = all - listed
	many, err := pg.One[bool](ctx, db, manyObjects)
	if err == nil && many {
		found.Obstacles = append(found.Obstacles, command.Obstacle{Kind: command.LargeObjects})
	}
	return err
}

// notLogical is what keeps a server from being followed, or from following; empty: nothing.
const notLogical = `SELECT CASE
		WHEN current_setting('wal_level') <> 'logical' THEN 'wal_level is ' || current_setting('wal_level') || ', and not logical'
		WHEN NOT (SELECT rolreplication FROM pg_roles WHERE rolname = current_user)
			OR NOT pg_has_role('pg_create_subscription', 'USAGE') THEN 'the agent lacks rights that pgherd agent init gives it'
		WHEN current_setting('max_wal_senders')::int < 1 THEN 'max_wal_senders is 0'
		WHEN current_setting('max_logical_replication_workers')::int < 1 THEN 'max_logical_replication_workers is 0'
		WHEN (SELECT count(*) FROM pg_replication_slots) >= current_setting('max_replication_slots')::int
			THEN 'all of max_replication_slots are in use'
		ELSE '' END`

// NotLogical says why the server cannot be followed, or cannot follow; empty: it can.
func (s *Source) NotLogical(ctx context.Context) (string, error) {
	return pg.One[string](ctx, s.db, notLogical)
}
