package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var (
	addOperator    = pgdb.Written("INSERT INTO operators (user_id, added_at) VALUES ($1, $2) ON CONFLICT DO NOTHING")
	removeOperator = pgdb.Written("DELETE FROM operators WHERE user_id = $1")
	listOperators  = pgdb.Written(`
		SELECT o.user_id, u.email, u.name, o.added_at, (SELECT count(*) FROM passkeys k WHERE k.user_id = u.id) AS passkeys
		FROM operators o JOIN users u ON u.id = o.user_id ORDER BY o.added_at, o.user_id`)
)

type operators struct{ pgdb.Session }

func (o operators) Add(ctx context.Context, user id.UserID, at time.Time) (bool, error) {
	n, err := o.Change(ctx, addOperator, user, at)
	return n > 0, err
}

func (o operators) Remove(ctx context.Context, user id.UserID) error {
	return o.MustChange(ctx, ports.ErrNoRow, removeOperator, user)
}

func (o operators) List(ctx context.Context) ([]ports.OperatorEntry, error) {
	return pgdb.All[ports.OperatorEntry](ctx, o.Session, listOperators)
}
