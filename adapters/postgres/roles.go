package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

var (
	roleTable   = pgdb.TableOf[role.Role]("roles").WithOptional("change_id")
	roleChanged = []string{
		"display_name", "status", "generation", "change_id", "credential_generation", "credential_expires_at", "verifier", "sealed",
	}
)

var (
	addRole       = pgdb.Define(roleTable.Insert())
	getRole       = pgdb.Define(roleTable.Read().Where("t.database_id = ? AND t.id = ?"))
	roleByKey     = pgdb.Define(roleTable.Read().Where("t.database_id = ? AND t.idempotency_key = ?"))
	listRoles     = pgdb.Define(roleTable.Read().Where("t.database_id = ? AND t.status <> 'removed'").OrderBy("t.ordinal"))
	saveRole      = pgdb.Define(roleTable.Update(roleChanged, "id = ? AND database_id = ?"))
	expiringRoles = pgdb.Define(roleTable.Read().Join("databases d ON d.id = t.database_id AND d.status = 'active'").
			Where("t.status = 'ready' AND t.credential_expires_at <= ?").
			Where("NOT EXISTS (SELECT FROM role_changes c WHERE c.database_id = t.database_id AND c.status = 'pending')").
			Where(`NOT EXISTS (SELECT FROM operations o
			WHERE o.database_id = t.database_id AND o.status IN ('queued', 'running') AND o.kind <> ALL(?)
				AND (o.status <> 'queued' OR o.kind <> ALL(?)))`).
		OrderBy("t.credential_expires_at", "t.id").Suffix("LIMIT ?"))
)

type roles struct{ pgdb.Session }

func (r roles) Add(ctx context.Context, row role.Role) error {
	return r.Write(ctx, addRole, roleTable.Values(row)...)
}

func (r roles) Get(ctx context.Context, db id.DatabaseID, of id.RoleID) (role.Role, error) {
	return pgdb.One[role.Role](ctx, r.Session, getRole, db, of)
}

func (r roles) ByKey(ctx context.Context, db id.DatabaseID, key idempotency.Key) (role.Role, error) {
	return pgdb.One[role.Role](ctx, r.Session, roleByKey, db, key)
}

func (r roles) List(ctx context.Context, db id.DatabaseID) ([]role.Role, error) {
	return pgdb.All[role.Role](ctx, r.Session, listRoles, db)
}

func (r roles) Save(ctx context.Context, row role.Role) error {
	return r.MustChange(ctx, ports.ErrNoRow, saveRole, append(pgdb.ValuesOf(row, roleChanged), row.ID, row.DatabaseID)...)
}

func (r roles) Expiring(ctx context.Context, now time.Time, beside operation.Beside, limit int) ([]role.Role, error) {
	return pgdb.All[role.Role](ctx, r.Session, expiringRoles, now, pgdb.Listed(beside.Always), pgdb.Listed(beside.UntilBegun), limit)
}
