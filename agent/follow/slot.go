package follow

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pgdump"
	"github.com/pgherd/pgherd/agent/sessions"
)

// Moment is the moment from which on changes are kept.
type Moment struct {
	// Snapshot is what the database was then. Others can import it until Close.
	Snapshot string

	source *Source
	req    Request
	conn   *pgconn.PgConn
}

// Close ends the session that lends the snapshot. Who has imported it keeps it.
func (m *Moment) Close() { _ = m.conn.Close(context.Background()) } // nothing is lost with it

// slot makes the replication slot. PostgreSQL ends it with the session until it is complete.
func (s *Source) slot(ctx context.Context, req Request) (_ *Moment, err error) {
	conn, err := s.server.Dial(ctx, s.server.User, s.server.Password, req.Database, map[string]string{
		"application_name": sessions.Name(req.OperationID), "replication": "database",
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close(context.WithoutCancel(ctx)) // nothing is lost with it
		}
	}()
	// It waits for transactions, and notices nothing meanwhile.
	stop := context.AfterFunc(ctx, func() {
		const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND application_name = $2`
		_, _ = s.db.ExecContext(context.WithoutCancel(ctx), end, conn.PID(), sessions.Name(req.OperationID))
	})
	defer stop()
	results, err := conn.Exec(ctx, "CREATE_REPLICATION_SLOT "+pg.Ident(NameOf(req.OperationID))+
		" LOGICAL pgoutput (SNAPSHOT 'export')").ReadAll()
	if err == nil && (len(results) == 0 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) < 3) {
		err = errors.New("PostgreSQL does not say what the slot is")
	}
	if err != nil {
		return nil, fmt.Errorf("make a replication slot: %w", err)
	}
	return &Moment{Snapshot: string(results[0].Rows[0][2]), source: s, req: req, conn: conn}, nil
}

// errOther says that what the snapshot has is not what the database has, or not what is published.
var errOther = errors.New("the tables are not those of the snapshot")

// Taken notes what the database is in the snapshot, which tx has, and makes sure that all changes since are kept. All tables are
// locked, so that none is written anew. A *pgdump.Disturbed where one was.
func (m *Moment) Taken(ctx context.Context, tx *sql.Tx) error {
	// In a new transaction this is asked of what the tables are now.
	const seen = `SELECT coalesce(md5(string_agg(concat_ws(' ', c.oid, c.relfilenode, c.relreplident), ',' ORDER BY c.oid)), '')` +
		published
	const unpublished = `SELECT count(*)` + published + ` AND NOT EXISTS (SELECT FROM pg_publication_rel r
		JOIN pg_publication p ON p.oid = r.prpubid WHERE p.pubname = $1 AND r.prrelid = c.oid)`
	then, err := pg.One[string](ctx, tx, seen)
	if err != nil {
		return err
	}
	missed, err := pg.One[int](ctx, tx, unpublished, NameOf(m.req.OperationID))
	if err != nil {
		return err
	}
	var now string
	err = m.source.inside(ctx, m.req.Database, func(db *sql.DB) (err error) {
		now, err = pg.One[string](ctx, db, seen)
		return err
	})
	if err != nil {
		return err
	}
	if missed > 0 || then != now {
		return &pgdump.Disturbed{How: "tables were created or written anew", Cause: errOther}
	}
	schema, err := schemaOf(ctx, tx, m.req.OperationID)
	if err != nil {
		return err
	}
	objects, err := objectsIn(ctx, tx)
	if err != nil {
		return err
	}
	if err := m.source.ready(ctx, m.req, schema, objects); err != nil {
		return err
	}
	crash.Point(crash.FollowTaken)
	return nil
}

// inside does something with a connection to a customer's database.
func (s *Source) inside(ctx context.Context, database string, do func(*sql.DB) error) error {
	return s.ledger.Inside.Run(ctx, func() error {
		db, err := s.ledger.Server().Open(database)
		if err != nil {
			return err
		}
		return errors.Join(do(db), db.Close())
	})
}

func (s *Source) column(ctx context.Context, req Request, query string, args ...any) (list []string, err error) {
	err = s.inside(ctx, req.Database, func(db *sql.DB) (err error) {
		list, err = pg.Column(ctx, db, query, args...)
		return err
	})
	return list, err
}
