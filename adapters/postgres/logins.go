package postgres

import (
	"context"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var loginTable = pgdb.TableOf[ports.LoginSecret]("database_logins")

var (
	replaceLogin = pgdb.Written(
		"UPDATE database_logins SET generation = $1, verifier = $2, sealed = $3 WHERE database_id = $4 AND login = $5")
	addLogin   = pgdb.Define(loginTable.Insert())
	getLogin   = pgdb.Define(loginTable.Read().Where("t.database_id = ? AND t.login = ?"))
	listLogins = pgdb.Define(loginTable.Read().Where("t.database_id = ?").
			OrderBy("array_position(ARRAY['owner', 'runtime', 'readonly'], t.login)"))
)

type logins struct{ pgdb.Session }

func (l logins) Add(ctx context.Context, secret ports.LoginSecret) error {
	return l.Write(ctx, addLogin, loginTable.Values(secret)...)
}

func (l logins) Get(ctx context.Context, db id.DatabaseID, login database.Login) (ports.LoginSecret, error) {
	return pgdb.One[ports.LoginSecret](ctx, l.Session, getLogin, db, login)
}

func (l logins) List(ctx context.Context, db id.DatabaseID) ([]ports.LoginSecret, error) {
	return pgdb.All[ports.LoginSecret](ctx, l.Session, listLogins, db)
}

func (l logins) Replace(ctx context.Context, secret ports.LoginSecret) error {
	return l.MustChange(ctx, ports.ErrNoRow, replaceLogin,
		secret.Generation, secret.Verifier, secret.Sealed, secret.DatabaseID, secret.Login)
}
