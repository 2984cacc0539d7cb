package follow

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Kept is what a database was when its changes began to be kept.
type Kept struct {
	op              id.OperationID
	schema, objects string
}

// Kept is what is known of the database that an operation keeps the changes of. ReasonNotFound: it keeps none. ReasonAltered: it
// does not any more.
func (s *Source) Kept(ctx context.Context, op id.OperationID) (Kept, error) {
	const query = "SELECT schema, coalesce(objects, ''), why FROM ledger.followed WHERE operation_id = $1 AND schema IS NOT NULL"
	k, why := Kept{op: op}, ""
	err := s.db.QueryRowContext(ctx, query, string(op)).Scan(&k.schema, &k.objects, &why)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return k, command.Refuse(command.ReasonNotFound, "no changes are kept for the operation")
	case err == nil && why != "":
		return k, command.Refuse(command.ReasonAltered, "%s", why)
	}
	return k, err
}

// Same makes sure that nothing has changed of a database but rows and sequences, whose changes are taken over. ReasonAltered.
func (k Kept) Same(ctx context.Context, db *sql.DB) error {
	schema, err := schemaOf(ctx, db, k.op)
	if err == nil {
		err = altered(k.schema, schema)
	}
	if err != nil {
		return err
	}
	objects, err := objectsIn(ctx, db)
	if err != nil {
		return err
	}
	if objects != k.objects {
		return command.Refuse(command.ReasonAltered,
			"while the database was moved, large objects were changed, which cannot be followed")
	}
	unlogged, err := pg.Column(ctx, db, unloggedRows)
	if err == nil && len(unlogged) > 0 {
		err = command.Refuse(command.ReasonAltered,
			"while the database was moved, rows came into %s, which is unlogged and cannot be followed", unlogged[0])
	}
	return err
}

// unloggedRows are tables with rows that PostgreSQL does not write to its log.
const unloggedRows = `SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'r' AND c.relpersistence = 'u' AND c.oid >= 16384 AND n.nspname !~ '^pg_(temp|toast)'
		AND pg_relation_size(c.oid) > 0 ORDER BY 1`

// Last is what a database has at the end, when nobody is in it any more: its sequences, and where its changes end. What others
// have committed without waiting for the disk comes before a commit that does.
func Last(ctx context.Context, db *sql.DB) (parted command.Parted, err error) {
	if parted.Sequences, err = Sequences(ctx, db); err != nil {
		return parted, err
	}
	const mark = `SELECT pg_logical_emit_message(true, 'pgherd', '')::text`
	parted.Position, err = pg.One[string](ctx, db, mark)
	if err != nil {
		err = fmt.Errorf("mark where the changes end: %w", err)
	}
	return parted, err
}
