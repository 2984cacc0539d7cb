package postgres

import (
	"context"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/ports"
)

var identityTable = pgdb.TableOf[person.Identity]("identities").Added()

var (
	identityBySubject = pgdb.Define(identityTable.Read().Where("t.issuer = ? AND t.subject = ?"))
	identitiesOf      = pgdb.Define(identityTable.Read().Where("t.user_id = ?").OrderBy("t.created_at", "t.issuer"))
	removeIdentities  = pgdb.Written("DELETE FROM identities WHERE user_id = $1")
)

type identities struct{ pgdb.Rows[person.Identity] }

func (i identities) BySubject(ctx context.Context, issuer, subject string) (person.Identity, error) {
	return i.One(ctx, identityBySubject, issuer, subject)
}

func (i identities) Of(ctx context.Context, user id.UserID) ([]person.Identity, error) {
	return i.All(ctx, identitiesOf, user)
}

func (i identities) Remove(ctx context.Context, user id.UserID) error {
	return i.MustChange(ctx, ports.ErrNoRow, removeIdentities, user)
}
