package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

var (
	roleTable   = tableOf[role.Role]("roles").withOptional("change_id")
	roleChanged = []string{
		"display_name", "status", "generation", "change_id", "credential_generation", "credential_expires_at", "verifier", "sealed",
	}
)

var (
	addRole       = define(roleTable.insert())
	getRole       = define(roleTable.read().Where("t.database_id = ? AND t.id = ?"))
	roleByKey     = define(roleTable.read().Where("t.database_id = ? AND t.idempotency_key = ?"))
	listRoles     = define(roleTable.read().Where("t.database_id = ? AND t.status <> 'removed'").OrderBy("t.ordinal"))
	saveRole      = define(roleTable.update(roleChanged, "id = ? AND database_id = ?"))
	expiringRoles = define(roleTable.read().Join("databases d ON d.id = t.database_id AND d.status = 'active'").
			Where("t.status = 'ready' AND t.credential_expires_at <= ?").
			Where("NOT EXISTS (SELECT FROM role_changes c WHERE c.database_id = t.database_id AND c.status = 'pending')").
			Where(`NOT EXISTS (SELECT FROM operations o
			WHERE o.database_id = t.database_id AND o.status IN ('queued', 'running') AND o.kind <> ALL(?)
				AND (o.status <> 'queued' OR o.kind <> ALL(?)))`).
		OrderBy("t.credential_expires_at", "t.id").Suffix("LIMIT ?"))
)

type roles struct{ session }

func (r roles) Add(ctx context.Context, row role.Role) error {
	return r.write(ctx, addRole, roleTable.values(row)...)
}

func (r roles) Get(ctx context.Context, db id.DatabaseID, of id.RoleID) (role.Role, error) {
	return one[role.Role](ctx, r.session, getRole, db, of)
}

func (r roles) ByKey(ctx context.Context, db id.DatabaseID, key idempotency.Key) (role.Role, error) {
	return one[role.Role](ctx, r.session, roleByKey, db, key)
}

func (r roles) List(ctx context.Context, db id.DatabaseID) ([]role.Role, error) {
	return all[role.Role](ctx, r.session, listRoles, db)
}

func (r roles) Save(ctx context.Context, row role.Role) error {
	return r.mustChange(ctx, ports.ErrNoRow, saveRole, append(valuesOf(row, roleChanged), row.ID, row.DatabaseID)...)
}

func (r roles) Expiring(ctx context.Context, now time.Time, beside operation.Beside, limit int) ([]role.Role, error) {
	return all[role.Role](ctx, r.session, expiringRoles, now, listed(beside.Always), listed(beside.UntilBegun), limit)
}
