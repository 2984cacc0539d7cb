package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

var (
	roleChangeTable   = tableOf[role.Change]("role_changes").withOptional("role_id", "user_id")
	roleChangeChanged = []string{
		"status", "generation", "credential_generation", "verifier", "sealed", "revealed", "ended_at", "attempts", "not_before",
		"refusal",
	}
)

var (
	addRoleChange     = define(roleChangeTable.insert())
	getRoleChange     = define(roleChangeTable.read().Where("t.database_id = ? AND t.id = ?"))
	roleChangeByKey   = define(roleChangeTable.read().Where("t.database_id = ? AND t.idempotency_key = ?"))
	pendingRoleChange = define(roleChangeTable.read().Where("t.database_id = ? AND t.status = 'pending'"))
	saveRoleChange    = define(roleChangeTable.update(roleChangeChanged, "id = ? AND database_id = ?"))
	listRoleChanges   = define(roleChangeTable.read().Where("t.database_id = ?").OrderBy("t.created_at DESC", "t.id DESC"))
	stuckRoleChanges  = written("SELECT count(*) FROM role_changes WHERE status = 'pending' AND refusal <> ''")
	dueRoleChanges    = define(dollar.Select("t.id", "t.database_id", "d.server_id", "d.account_id").
				From("role_changes t").Join("databases d ON d.id = t.database_id").
				Where("t.status = 'pending' AND t.not_before <= ?").OrderBy("t.not_before", "t.id").Suffix("LIMIT ?"))
)

type roleChanges struct{ session }

func (c roleChanges) Add(ctx context.Context, row role.Change) error {
	return c.write(ctx, addRoleChange, roleChangeTable.values(row)...)
}

func (c roleChanges) Get(ctx context.Context, db id.DatabaseID, change id.OperationID) (role.Change, error) {
	return one[role.Change](ctx, c.session, getRoleChange, db, change)
}

func (c roleChanges) ByKey(ctx context.Context, db id.DatabaseID, key idempotency.Key) (role.Change, error) {
	return one[role.Change](ctx, c.session, roleChangeByKey, db, key)
}

func (c roleChanges) Pending(ctx context.Context, db id.DatabaseID) (role.Change, error) {
	return one[role.Change](ctx, c.session, pendingRoleChange, db)
}

func (c roleChanges) Save(ctx context.Context, row role.Change) error {
	return c.mustChange(ctx, ports.ErrNoRow, saveRoleChange,
		append(valuesOf(row, roleChangeChanged), row.ID, row.DatabaseID)...)
}

func (c roleChanges) Due(ctx context.Context, now time.Time, limit int) ([]ports.DueChange, error) {
	return all[ports.DueChange](ctx, c.session, dueRoleChanges, now, limit)
}

func (c roleChanges) List(ctx context.Context, db id.DatabaseID) ([]role.Change, error) {
	return all[role.Change](ctx, c.session, listRoleChanges, db)
}

func (c roleChanges) Stuck(ctx context.Context) (int, error) {
	return one[int](ctx, c.session, stuckRoleChanges)
}
