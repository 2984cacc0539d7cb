package postgres

import (
	"context"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var (
	userTable    = pgdb.TableOf[account.User]("users")
	accountTable = pgdb.TableOf[account.Account]("accounts")

	accountChanges = []string{
		"plan", "max_databases", "connection_cap", "backup_days", "verify_backups", "credential_validity",
		"database_bytes", "backup_bytes",
	}
)

var (
	addUser     = pgdb.Define(userTable.Insert())
	getUsers    = pgdb.Define(userTable.Read().Where("t.id = ANY(?)"))
	addAccount  = pgdb.Define(accountTable.Insert())
	getAccount  = pgdb.Define(accountTable.Read().Where("t.id = ?"))
	lockAccount = pgdb.Define(accountTable.Read().Where("t.id = ?").Suffix("FOR NO KEY UPDATE"))
	saveAccount = pgdb.Define(accountTable.Update(accountChanges, "id = ?"))
	getUser     = pgdb.Define(userTable.Read().Where("t.id = ?"))
	userByEmail = pgdb.Define(userTable.Read().Where(`lower(t.email COLLATE "C") = lower(? COLLATE "C")`))
)

type accounts struct{ pgdb.Session }

func (a accounts) AddUser(ctx context.Context, u account.User) error {
	return a.Write(ctx, addUser, userTable.Values(u)...)
}

func (a accounts) Users(ctx context.Context, users []id.UserID) ([]account.User, error) {
	return pgdb.All[account.User](ctx, a.Session, getUsers, pgdb.Listed(users))
}

func (a accounts) Add(ctx context.Context, row account.Account) error {
	return a.Write(ctx, addAccount, accountTable.Values(row)...)
}

func (a accounts) Get(ctx context.Context, of id.AccountID) (account.Account, error) {
	return pgdb.One[account.Account](ctx, a.Session, getAccount, of)
}

func (a accounts) LockForQuota(ctx context.Context, of id.AccountID) (account.Account, error) {
	return pgdb.Locked[account.Account](ctx, a.Session, lockAccount, of)
}

func (a accounts) Save(ctx context.Context, row account.Account) error {
	return a.MustChange(ctx, ports.ErrNoRow, saveAccount, append(pgdb.ValuesOf(row, accountChanges), row.ID)...)
}

func (a accounts) User(ctx context.Context, user id.UserID) (account.User, error) {
	return pgdb.One[account.User](ctx, a.Session, getUser, user)
}

func (a accounts) UserByEmail(ctx context.Context, email string) (account.User, error) {
	return pgdb.One[account.User](ctx, a.Session, userByEmail, email)
}
