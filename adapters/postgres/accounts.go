package postgres

import (
	"context"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
)

var (
	userTable    = pgdb.TableOf[account.User]("users").Added()
	accountTable = pgdb.TableOf[account.Account]("accounts").Added().
			Saved([]string{"id"}, []string{
			"plan", "max_databases", "connection_cap", "backup_days", "pitr_days", "verify_backups", "credential_validity",
			"preview_copies", "postgres_version", "database_bytes", "backup_bytes", "suspended_at", "suspended_for",
		})
)

var (
	getUsers    = pgdb.Define(userTable.Read().Where("t.id = ANY(?)"))
	getAccount  = pgdb.Define(accountTable.Read().Where("t.id = ?"))
	accountOf   = pgdb.Define(accountTable.Read().Where("t.owner_id = ?"))
	lockAccount = pgdb.Define(accountTable.Read().Where("t.id = ?").Suffix("FOR NO KEY UPDATE"))
	getUser     = pgdb.Define(userTable.Read().Where("t.id = ?"))
	userByEmail = pgdb.Define(userTable.Read().Where(`t.email = ?`))
)

type accounts struct{ pgdb.Rows[account.Account] }

func (a accounts) AddUser(ctx context.Context, u account.User) error {
	return userTable.Add(ctx, a.Session, u)
}

func (a accounts) Users(ctx context.Context, users []id.UserID) ([]account.User, error) {
	return pgdb.All[account.User](ctx, a.Session, getUsers, pgdb.Listed(users))
}

func (a accounts) Get(ctx context.Context, of id.AccountID) (account.Account, error) {
	return a.One(ctx, getAccount, of)
}

func (a accounts) OfOwner(ctx context.Context, user id.UserID) (account.Account, error) {
	return a.One(ctx, accountOf, user)
}

func (a accounts) LockForQuota(ctx context.Context, of id.AccountID) (account.Account, error) {
	return a.Locked(ctx, lockAccount, of)
}

func (a accounts) User(ctx context.Context, user id.UserID) (account.User, error) {
	return pgdb.One[account.User](ctx, a.Session, getUser, user)
}

func (a accounts) UserByEmail(ctx context.Context, email string) (account.User, error) {
	return pgdb.One[account.User](ctx, a.Session, userByEmail, email)
}
