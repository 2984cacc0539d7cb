package follow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pgdump"
	"github.com/pgherd/pgherd/core/id"
)

// published are the tables whose rows move: those with rows of their own, and the partitioned ones that they are parts of, so
// that what is attached meanwhile belongs to the publication too. Tables of extensions are those of their scripts.
const published = ` FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND c.oid >= 16384 AND n.nspname !~ '^pg_(temp|toast)'
	  AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid AND e.deptype = 'e')`

const (
	// publishWait is how long a publication waits for one table, behind whose lock others wait meanwhile.
	publishWait = 300 * time.Millisecond
	// publishTime bounds all its tries.
	publishTime = time.Minute
)

// publish makes the publication. It is in nobody's way who reads and writes rows.
func (s *Source) publish(ctx context.Context, req Request) error {
	const tables = `SELECT format('%I.%I', n.nspname, c.relname)` + published + ` ORDER BY c.oid`
	for deadline := time.Now().Add(publishTime); ; {
		list, err := s.column(ctx, req, tables)
		if err != nil {
			return err
		}
		publication := "CREATE PUBLICATION " + pg.Ident(NameOf(req.OperationID))
		if len(list) > 0 {
			publication += " FOR TABLE ONLY " + strings.Join(list, ", ONLY ")
		}
		err = s.run(ctx, req.Database, joblogin.LockWithin(publishWait), publication)
		switch {
		case err == nil:
			return nil
		case !pg.InTheWay(err) && pg.State(err) != undefinedTable && pg.State(err) != undefinedSchema:
			return fmt.Errorf("publish the tables: %w", err)
		case time.Now().After(deadline):
			return &pgdump.Disturbed{How: "tables were locked or removed again and again", Cause: err}
		}
		if err := loop.Wait(ctx, publishWait); err != nil {
			return err
		}
	}
}

// What PostgreSQL says of a table that has gone meanwhile.
const (
	undefinedTable  = "42P01"
	undefinedSchema = "3F000"
	noDatabase      = "3D000"
)

// unpublish drops the publication, if the database is still there.
func (s *Source) unpublish(ctx context.Context, op id.OperationID) error {
	const of = `SELECT coalesce((SELECT p.datname FROM ledger.followed f JOIN ledger.database d ON d.id = f.database_id
		JOIN pg_database p ON p.oid = d.oid AND p.datallowconn WHERE f.operation_id = $1), '')`
	database, err := pg.One[string](ctx, s.db, of, string(op))
	if err != nil || database == "" {
		return err
	}
	for {
		err := s.run(ctx, database, joblogin.LockWithin(publishWait), "DROP PUBLICATION IF EXISTS "+pg.Ident(NameOf(op)))
		if !pg.InTheWay(err) {
			if pg.State(err) == noDatabase {
				return nil
			}
			return err
		}
		if waited := loop.Wait(ctx, publishWait); waited != nil {
			return errors.Join(waited, err)
		}
	}
}

// run runs statements in a database, in one transaction.
func (s *Source) run(ctx context.Context, database string, statements ...string) error {
	return s.ledger.Inside.Run(ctx, func() error { return s.ledger.Server().Once(ctx, database, statements...) })
}
