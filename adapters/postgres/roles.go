package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
)

var (
	roleTable = pgdb.TableOf[role.Role]("roles").WithOptional("change_id").Added().
		Saved([]string{"id", "database_id"}, []string{
			"display_name", "status", "generation", "change_id", "credential_generation", "credential_expires_at", "verifier", "sealed",
		})
)

var (
	getRole       = pgdb.Define(roleTable.Read().Where("t.database_id = ? AND t.id = ?"))
	roleByKey     = pgdb.Define(roleTable.Read().Where("t.database_id = ? AND t.idempotency_key = ?"))
	listRoles     = pgdb.Define(roleTable.Read().Where("t.database_id = ? AND t.status <> 'removed'").OrderBy("t.ordinal"))
	expiringRoles = pgdb.Define(roleTable.Read().Join("databases d ON d.id = t.database_id AND d.status = 'active'").
			Where("t.status = 'ready' AND t.credential_expires_at <= ?").
			Where("NOT EXISTS (SELECT FROM role_changes c WHERE c.database_id = t.database_id AND c.status = 'pending')").
			Where(`NOT EXISTS (SELECT FROM operations o
			WHERE o.database_id = t.database_id AND NOT o.logins AND o.status IN ('queued', 'running') AND o.kind <> ALL(?)
				AND (o.status <> 'queued' OR o.kind <> ALL(?)))`).
		OrderBy("t.credential_expires_at", "t.id").Suffix("LIMIT ?"))
)

type roles struct{ pgdb.Rows[role.Role] }

func (r roles) Get(ctx context.Context, db id.DatabaseID, of id.RoleID) (role.Role, error) {
	return r.One(ctx, getRole, db, of)
}

func (r roles) ByKey(ctx context.Context, db id.DatabaseID, key idempotency.Key) (role.Role, error) {
	return r.One(ctx, roleByKey, db, key)
}

func (r roles) List(ctx context.Context, db id.DatabaseID) ([]role.Role, error) {
	return r.All(ctx, listRoles, db)
}

func (r roles) Expiring(ctx context.Context, now time.Time, beside operation.Beside, limit int) ([]role.Role, error) {
	return r.All(ctx, expiringRoles, now, pgdb.Listed(beside.Always), pgdb.Listed(beside.UntilBegun), limit)
}
