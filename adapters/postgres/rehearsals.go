package postgres

import (
	"context"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rehearsal"
)

var (
	rehearsalTable = pgdb.TableOf[rehearsal.Rehearsal]("rehearsals")
	putRehearsal   = pgdb.Define(rehearsalTable.Insert().Suffix(`ON CONFLICT (database_id, postgres_version) DO UPDATE SET
		server_id = excluded.server_id, operation_id = excluded.operation_id, ended_at = excluded.ended_at,
		schema_sha256 = excluded.schema_sha256, breaks = excluded.breaks`))
	lastRehearsal = pgdb.Define(rehearsalTable.Read().Where("t.database_id = ? AND t.postgres_version = ?"))
	rehearsalsOf  = pgdb.Define(rehearsalTable.Read().Where("t.database_id = ?").OrderBy("t.postgres_version"))
)

type rehearsals struct {
	pgdb.Rows[rehearsal.Rehearsal]
}

func (r rehearsals) Put(ctx context.Context, row rehearsal.Rehearsal) error {
	return r.Write(ctx, putRehearsal, pgdb.ValuesOf(row, rehearsalTable.Columns)...)
}

func (r rehearsals) Last(ctx context.Context, db id.DatabaseID, version int) (rehearsal.Rehearsal, error) {
	return r.One(ctx, lastRehearsal, db, version)
}

func (r rehearsals) Of(ctx context.Context, db id.DatabaseID) ([]rehearsal.Rehearsal, error) {
	return r.All(ctx, rehearsalsOf, db)
}
