package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

var passkeyTable = pgdb.TableOf[person.Passkey]("passkeys").Added().Saved([]string{"id"}, []string{"record", "used_at"})

var (
	passkeysOf          = pgdb.Define(passkeyTable.Read().Where("t.user_id = ?").OrderBy("t.created_at", "t.id"))
	passkeyByCredential = pgdb.Define(passkeyTable.Read().Where("t.credential = ?"))
	removePasskey       = pgdb.Written("DELETE FROM passkeys WHERE user_id = $1 AND id = $2")
	spendChallenge      = pgdb.Written("INSERT INTO spent_challenges (mark, until) VALUES ($1, $2) ON CONFLICT DO NOTHING")
	forgetChallenges    = pgdb.Written(`
		DELETE FROM spent_challenges WHERE mark IN (
			SELECT mark FROM spent_challenges WHERE until < $1 ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED)`)
)

type passkeys struct{ pgdb.Rows[person.Passkey] }

func (p passkeys) Of(ctx context.Context, user id.UserID) ([]person.Passkey, error) {
	return p.All(ctx, passkeysOf, user)
}

func (p passkeys) ByCredential(ctx context.Context, credential []byte) (person.Passkey, error) {
	return p.One(ctx, passkeyByCredential, credential)
}

func (p passkeys) Remove(ctx context.Context, user id.UserID, passkey id.PasskeyID) error {
	return p.MustChange(ctx, ports.ErrNoRow, removePasskey, user, passkey)
}

func (p passkeys) Spend(ctx context.Context, challenge token.Hash, until time.Time) (bool, error) {
	n, err := p.Change(ctx, spendChallenge, challenge[:], until)
	return n > 0, err
}

func (p passkeys) Forget(ctx context.Context, before time.Time, limit int) error {
	return p.Write(ctx, forgetChallenges, before, limit)
}
