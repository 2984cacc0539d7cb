package postgres

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var (
	userTable       = tableOf[account.User]("users")
	accountTable    = tableOf[account.Account]("accounts")
	membershipTable = tableOf[ports.Membership]("memberships")

	accountChanges = []string{
		"plan", "max_databases", "connection_cap", "backup_days", "verify_backups", "credential_validity",
		"database_bytes", "backup_bytes",
	}
)

var (
	addUser     = define(userTable.insert())
	addAccount  = define(accountTable.insert())
	getAccount  = define(accountTable.read().Where("t.id = ?"))
	lockAccount = define(accountTable.read().Where("t.id = ?").Suffix("FOR NO KEY UPDATE"))
	saveAccount = define(accountTable.update(accountChanges, "id = ?"))
	setMember   = define(membershipTable.insert().Suffix("ON CONFLICT (database_id, user_id) DO UPDATE SET role = excluded.role"))
)

type accounts struct{ session }

func (a accounts) AddUser(ctx context.Context, u account.User) error {
	return a.write(ctx, addUser, userTable.values(u)...)
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

func (a accounts) SetMember(ctx context.Context, m ports.Membership) error {
	return a.write(ctx, setMember, membershipTable.values(m)...)
}
