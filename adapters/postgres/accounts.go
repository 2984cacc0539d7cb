package postgres

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var (
	userTable    = tableOf[account.User]("users")
	accountTable = tableOf[account.Account]("accounts")

	accountChanges = []string{
		"plan", "max_databases", "connection_cap", "backup_days", "verify_backups", "credential_validity",
		"database_bytes", "backup_bytes",
	}
)

var (
	addUser     = define(userTable.insert())
	getUsers    = define(userTable.read().Where("t.id = ANY(?)"))
	addAccount  = define(accountTable.insert())
	getAccount  = define(accountTable.read().Where("t.id = ?"))
	lockAccount = define(accountTable.read().Where("t.id = ?").Suffix("FOR NO KEY UPDATE"))
	saveAccount = define(accountTable.update(accountChanges, "id = ?"))
	getUser     = define(userTable.read().Where("t.id = ?"))
	userByEmail = define(userTable.read().Where(`lower(t.email COLLATE "C") = lower(? COLLATE "C")`))
)

type accounts struct{ session }

func (a accounts) AddUser(ctx context.Context, u account.User) error {
	return a.write(ctx, addUser, userTable.values(u)...)
}

func (a accounts) Users(ctx context.Context, users []id.UserID) ([]account.User, error) {
	return all[account.User](ctx, a.session, getUsers, listed(users))
}

func (a accounts) Add(ctx context.Context, row account.Account) error {
	return a.write(ctx, addAccount, accountTable.values(row)...)
}

func (a accounts) Get(ctx context.Context, of id.AccountID) (account.Account, error) {
	return one[account.Account](ctx, a.session, getAccount, of)
}

func (a accounts) LockForQuota(ctx context.Context, of id.AccountID) (account.Account, error) {
	return locked[account.Account](ctx, a.session, lockAccount, of)
}

func (a accounts) Save(ctx context.Context, row account.Account) error {
	return a.mustChange(ctx, ports.ErrNoRow, saveAccount, append(valuesOf(row, accountChanges), row.ID)...)
}

func (a accounts) User(ctx context.Context, user id.UserID) (account.User, error) {
	return one[account.User](ctx, a.session, getUser, user)
}

func (a accounts) UserByEmail(ctx context.Context, email string) (account.User, error) {
	return one[account.User](ctx, a.session, userByEmail, email)
}
