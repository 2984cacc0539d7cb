package postgres

import (
	"context"

	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
)

var qualificationTable = tableOf[extension.Qualification]("extension_qualifications")

var (
	putQualification = define(qualificationTable.insert().Suffix(`ON CONFLICT (server_id, extension) DO UPDATE SET
		version = excluded.version, server_version = excluded.server_version, qualified = excluded.qualified,
		message = excluded.message, at = excluded.at`))
	qualificationsOf = define(qualificationTable.read().Where("t.server_id = ?").OrderBy(`t.extension COLLATE "C"`))
)

type qualifications struct{ session }

func (q qualifications) Put(ctx context.Context, row extension.Qualification) error {
	return q.write(ctx, putQualification, qualificationTable.values(row)...)
}

func (q qualifications) Of(ctx context.Context, server id.ServerID) ([]extension.Qualification, error) {
	return all[extension.Qualification](ctx, q.session, qualificationsOf, server)
}
