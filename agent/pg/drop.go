package pg

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/pgherd/pgherd/agent/loop"
)

// lockHolders ends the sessions that hold a lock on a database, but for the agent's own and administrators'.
const lockHolders = `SELECT count(pg_terminate_backend(l.pid)) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
	JOIN pg_roles r ON r.oid = a.usesysid
	WHERE l.locktype = 'object' AND l.classid = 'pg_database'::regclass AND l.granted
		AND a.usename <> current_user AND NOT r.rolsuper AND l.objid = (SELECT oid FROM pg_database WHERE datname = $1)`

// sessions ends those in a database, but for administrators'.
const sessions = `SELECT count(pg_terminate_backend(a.pid)) FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
	WHERE a.datname = $1 AND NOT r.rolsuper`

// dropPause is between two attempts at a drop.
const dropPause = 10 * time.Millisecond

// DropDatabase drops a database, if there is one of the name, with the sessions in it. Any login of the server, in whatever
// database it is, can hold a lock on this one: by an open transaction in which it has stored a setting for itself there. Who does
// so is ended, again and again until ctx ends.
//
// An administrator, who may look at it in passing, is given the five seconds for which PostgreSQL waits for a session to end by
// itself.
func DropDatabase(ctx context.Context, db *sql.DB, name string) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer conn.Raw(func(any) error { return driver.ErrBadConn }) //nolint:errcheck // nobody uses a connection of such settings again
	if _, err := conn.ExecContext(ctx, "SET lock_timeout = '100ms'"); err != nil {
		return err
	}
	for {
		err := dropForced(ctx, conn, name)
		if !InTheWay(err) {
			return err
		}
		if _, err := conn.ExecContext(ctx, lockHolders, name); err != nil {
			return err
		}
		if ended := loop.Wait(ctx, dropPause); ended != nil {
			return errors.Join(ended, err)
		}
	}
}

func dropForced(ctx context.Context, conn *sql.Conn, name string) error {
	drop := "DROP DATABASE IF EXISTS " + pq.QuoteIdentifier(name)
	_, err := conn.ExecContext(ctx, drop+" WITH (FORCE)")
	if pq.As(err, pqerror.InsufficientPrivilege) == nil { // Nobody is in it whom only a superuser may end.
		return err
	}
	if _, err := conn.ExecContext(ctx, sessions, name); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, drop)
	return err
}
