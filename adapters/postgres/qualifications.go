package postgres

import (
	"context"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
)

var qualificationTable = pgdb.TableOf[extension.Qualification]("extension_qualifications")

var (
	putQualification = pgdb.Define(qualificationTable.Insert().Suffix(`ON CONFLICT (server_id, extension) DO UPDATE SET
		version = excluded.version, server_version = excluded.server_version, qualified = excluded.qualified,
		message = excluded.message, at = excluded.at`))
	qualificationsOf = pgdb.Define(qualificationTable.Read().Where("t.server_id = ?").OrderBy(`t.extension COLLATE "C"`))
)

type qualifications struct {
	pgdb.Rows[extension.Qualification]
}

func (q qualifications) Put(ctx context.Context, row extension.Qualification) error {
	return q.Write(ctx, putQualification, qualificationTable.Values(row)...)
}

func (q qualifications) Of(ctx context.Context, server id.ServerID) ([]extension.Qualification, error) {
	return q.All(ctx, qualificationsOf, server)
}
