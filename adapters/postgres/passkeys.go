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

var (
	passkeyTable  = pgdb.TableOf[person.Passkey]("passkeys").Added().Saved([]string{"id"}, []string{"record", "used_at"})
	ceremonyTable = pgdb.TableOf[person.Ceremony]("ceremonies").WithOptional("session_id").Added()
)

var (
	passkeysOf          = pgdb.Define(passkeyTable.Read().Where("t.user_id = ?").OrderBy("t.created_at", "t.id"))
	passkeyByCredential = pgdb.Define(passkeyTable.Read().Where("t.credential = ?"))
	removePasskey       = pgdb.Written("DELETE FROM passkeys WHERE user_id = $1 AND id = $2")
	lockCeremony        = pgdb.Define(ceremonyTable.Read().Where("t.token_hash = ?").Suffix("FOR UPDATE"))
	removeCeremony      = pgdb.Written("DELETE FROM ceremonies WHERE token_hash = $1")
	forgetCeremonies    = pgdb.Written(`
		DELETE FROM ceremonies WHERE token_hash IN (
			SELECT token_hash FROM ceremonies WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`)
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

func (p passkeys) Ask(ctx context.Context, c person.Ceremony) error {
	return ceremonyTable.Add(ctx, p.Session, c)
}

func (p passkeys) Take(ctx context.Context, hash token.Hash) (person.Ceremony, error) {
	c, err := pgdb.Locked[person.Ceremony](ctx, p.Session, lockCeremony, hash[:])
	if err != nil {
		return c, err
	}
	return c, p.Write(ctx, removeCeremony, hash[:])
}

func (p passkeys) Forget(ctx context.Context, before time.Time, limit int) error {
	return p.Write(ctx, forgetCeremonies, before, limit)
}
