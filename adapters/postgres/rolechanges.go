package postgres

import (
	"context"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
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
	stuckRoleChanges  = pgdb.Written("SELECT count(*) FROM role_changes WHERE status = 'pending' AND refusal <> ''")
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

func (c roleChanges) Stuck(ctx context.Context) (int, error) {
	return pgdb.One[int](ctx, c.Session, stuckRoleChanges)
}
