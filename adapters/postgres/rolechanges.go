package postgres

import (
	"context"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

var (
	roleChangeTable = pgdb.TableOf[role.Change]("role_changes").WithOptional("role_id", "user_id").Added().
		Saved([]string{"id", "database_id"}, []string{
			"status", "generation", "credential_generation", "verifier", "sealed", "revealed", "ended_at", "refusal",
		})
)

var (
	getRoleChange     = pgdb.Define(roleChangeTable.Read().Where("t.database_id = ? AND t.id = ?"))
	roleChangeByKey   = pgdb.Define(roleChangeTable.Read().Where("t.database_id = ? AND t.idempotency_key = ?"))
	pendingRoleChange = pgdb.Define(roleChangeTable.Read().Where("t.database_id = ? AND t.status = 'pending'"))
	listRoleChanges   = pgdb.Define(roleChangeTable.Read().Where("t.database_id = ?").OrderBy("t.created_at DESC", "t.id DESC"))
	stuckRoleChanges  = pgdb.Written(`
		SELECT s.name AS server, count(c.id) AS count, min(c.created_at) AS oldest
		FROM servers s LEFT JOIN (role_changes c JOIN databases d ON d.id = c.database_id)
			ON d.server_id = s.id AND c.status = 'pending' AND c.refusal <> ''
		GROUP BY s.name ORDER BY s.name`)
)

type roleChanges struct{ pgdb.Rows[role.Change] }

func (c roleChanges) Get(ctx context.Context, db id.DatabaseID, change id.OperationID) (role.Change, error) {
	return c.One(ctx, getRoleChange, db, change)
}

func (c roleChanges) ByKey(ctx context.Context, db id.DatabaseID, key idempotency.Key) (role.Change, error) {
	return c.One(ctx, roleChangeByKey, db, key)
}

func (c roleChanges) Pending(ctx context.Context, db id.DatabaseID) (role.Change, error) {
	return c.One(ctx, pendingRoleChange, db)
}

func (c roleChanges) List(ctx context.Context, db id.DatabaseID) ([]role.Change, error) {
	return c.All(ctx, listRoleChanges, db)
}

func (c roleChanges) Stuck(ctx context.Context) ([]ports.ServerTally, error) {
	return pgdb.All[ports.ServerTally](ctx, c.Session, stuckRoleChanges)
}
