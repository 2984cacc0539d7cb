package postgres

import (
	"context"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var loginTable = tableOf[ports.LoginSecret]("database_logins")

var (
	replaceLogin = written(
		"UPDATE database_logins SET generation = $1, verifier = $2, sealed = $3 WHERE database_id = $4 AND login = $5")
	addLogin   = define(loginTable.insert())
	getLogin   = define(loginTable.read().Where("t.database_id = ? AND t.login = ?"))
	listLogins = define(loginTable.read().Where("t.database_id = ?").
			OrderBy("array_position(ARRAY['owner', 'runtime', 'readonly'], t.login)"))
)

type logins struct{ session }

func (l logins) Add(ctx context.Context, secret ports.LoginSecret) error {
	return l.write(ctx, addLogin, loginTable.values(secret)...)
}

func (l logins) Get(ctx context.Context, db id.DatabaseID, login database.Login) (ports.LoginSecret, error) {
	return one[ports.LoginSecret](ctx, l.session, getLogin, db, login)
}

func (l logins) List(ctx context.Context, db id.DatabaseID) ([]ports.LoginSecret, error) {
	return all[ports.LoginSecret](ctx, l.session, listLogins, db)
}

func (l logins) Replace(ctx context.Context, secret ports.LoginSecret) error {
	return l.mustChange(ctx, ports.ErrNoRow, replaceLogin,
		secret.Generation, secret.Verifier, secret.Sealed, secret.DatabaseID, secret.Login)
}
