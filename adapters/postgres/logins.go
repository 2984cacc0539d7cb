package postgres

import (
	"context"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var loginTable = pgdb.TableOf[ports.LoginSecret]("database_logins").Added()

var (
	replaceLogin = pgdb.Written(
		"UPDATE database_logins SET generation = $1, verifier = $2, sealed = $3 WHERE database_id = $4 AND login = $5")
	getLogin   = pgdb.Define(loginTable.Read().Where("t.database_id = ? AND t.login = ?"))
	listLogins = pgdb.Define(loginTable.Read().Where("t.database_id = ?").
			OrderBy("array_position(ARRAY['owner', 'runtime', 'readonly'], t.login)"))
)

type logins struct{ pgdb.Rows[ports.LoginSecret] }

func (l logins) Get(ctx context.Context, db id.DatabaseID, login database.Login) (ports.LoginSecret, error) {
	return l.One(ctx, getLogin, db, login)
}

func (l logins) List(ctx context.Context, db id.DatabaseID) ([]ports.LoginSecret, error) {
	return l.All(ctx, listLogins, db)
}

func (l logins) Replace(ctx context.Context, secret ports.LoginSecret) error {
	return l.MustChange(ctx, ports.ErrNoRow, replaceLogin,
		secret.Generation, secret.Verifier, secret.Sealed, secret.DatabaseID, secret.Login)
}
