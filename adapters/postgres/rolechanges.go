package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

var (
	roleChangeTable = pgdb.TableOf[role.Change]("role_changes").WithOptional("role_id", "user_id").Added().
		Saved([]string{"id", "database_id"}, []string{
			"status", "generation", "credential_generation", "verifier", "sealed", "revealed", "ended_at", "attempts", "not_before",
			"refusal",
		})
)

var (
	getRoleChange     = pgdb.Define(roleChangeTable.Read().Where("t.database_id = ? AND t.id = ?"))
	roleChangeByKey   = pgdb.Define(roleChangeTable.Read().Where("t.database_id = ? AND t.idempotency_key = ?"))
	pendingRoleChange = pgdb.Define(roleChangeTable.Read().Where("t.database_id = ? AND t.status = 'pending'"))
	listRoleChanges   = pgdb.Define(roleChangeTable.Read().Where("t.database_id = ?").OrderBy("t.created_at DESC", "t.id DESC"))
	stuckRoleChanges  = pgdb.Written("SELECT count(*) FROM role_changes WHERE status = 'pending' AND refusal <> ''")
	dueRoleChanges    = pgdb.Define(pgdb.Dollar.Select("t.id", "t.database_id", "d.server_id", "d.account_id").
				From("role_changes t").Join("databases d ON d.id = t.database_id").
				Where("t.status = 'pending' AND t.not_before <= ?").OrderBy("t.not_before", "t.id").Suffix("LIMIT ?"))
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

func (c roleChanges) Due(ctx context.Context, now time.Time, limit int) ([]ports.DueChange, error) {
	return pgdb.All[ports.DueChange](ctx, c.Session, dueRoleChanges, now, limit)
}

func (c roleChanges) List(ctx context.Context, db id.DatabaseID) ([]role.Change, error) {
	return c.All(ctx, listRoleChanges, db)
}

func (c roleChanges) Stuck(ctx context.Context) (int, error) {
	return pgdb.One[int](ctx, c.Session, stuckRoleChanges)
}
