package postgres

import (
	"context"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

var (
	sessionTable = pgdb.TableOf[person.Session]("sessions").Added().
			Saved([]string{"id"}, []string{"token_hash", "status", "tries", "used_at", "proved_at", "proved_by", "ended_at"})
	resetTable = pgdb.TableOf[person.Reset]("resets").
			Added(`ON CONFLICT (user_id) DO UPDATE SET token_hash = excluded.token_hash, expires_at = excluded.expires_at,
			by_operator = excluded.by_operator`)
	factorTable = pgdb.TableOf[person.Factor]("factors").
			Added(`ON CONFLICT (id) DO UPDATE SET sealed_secret = excluded.sealed_secret, last_step = excluded.last_step,
			created_at = excluded.created_at, confirmed_at = excluded.confirmed_at`).
		Saved([]string{"id"}, []string{"last_step", "confirmed_at"})
)

var (
	sessionByToken = pgdb.Written(`
		SELECT ` + sessionTable.Prefixed("t", "session.") + `, u.id AS "user.id", u.email AS "user.email", u.name AS "user.name",
			u.created_at AS "user.created_at", ` + accountTable.Prefixed("a", "account.") + `,
			EXISTS (SELECT FROM switches WHERE name = 'maintenance' AND enabled) AS maintenance,
			EXISTS (SELECT FROM operators o WHERE o.user_id = u.id) AS operator,
			EXISTS (SELECT FROM passkeys k WHERE k.user_id = u.id) AS passkey
		FROM sessions t JOIN users u ON u.id = t.user_id JOIN accounts a ON a.owner_id = t.user_id
		WHERE t.token_hash = $1`)
	getSession  = pgdb.Define(sessionTable.Read().Where("t.id = ?"))
	lockSession = pgdb.Define(sessionTable.Read().Where("t.id = ?").Suffix("FOR NO KEY UPDATE"))
	sessionsOf  = pgdb.Define(sessionTable.Read().Where("t.user_id = ? AND t.status <> 'ended'").
			OrderBy("t.used_at DESC", "t.id DESC"))
	touchSession = pgdb.Written("UPDATE sessions SET used_at = $2 WHERE id = $1 AND status = 'open' AND used_at < $2")
	// In the order of their IDs, so that two who do so cannot deadlock.
	endSessions = pgdb.Written(`
		UPDATE sessions SET status = 'ended', ended_at = $3 WHERE id IN (
			SELECT id FROM sessions WHERE user_id = $1 AND id IS DISTINCT FROM $2::uuid AND status <> 'ended'
			ORDER BY id FOR NO KEY UPDATE)`)
	forgetSessions = pgdb.Written(`
		DELETE FROM sessions WHERE id IN (
			(SELECT id FROM sessions WHERE ended_at < $1 ORDER BY ended_at LIMIT $3)
			UNION (SELECT id FROM sessions WHERE created_at < $2 ORDER BY created_at LIMIT $3) LIMIT $3)`)

	lockUser       = pgdb.Define(userTable.Read().Where("t.id = ?").Suffix("FOR NO KEY UPDATE"))
	setPassword    = pgdb.Written("UPDATE users SET password_hash = $2 WHERE id = $1")
	setLoggedIn    = pgdb.Written("UPDATE users SET logged_in_at = $2 WHERE id = $1")
	resetByToken   = pgdb.Define(resetTable.Read().Where("t.token_hash = ?"))
	removeReset    = pgdb.Written("DELETE FROM resets WHERE user_id = $1")
	getFactor      = pgdb.Define(factorTable.Read().Where("t.id = ?"))
	removeFactor   = pgdb.Written("DELETE FROM factors WHERE id = $1")
	removeRecovery = pgdb.Written("DELETE FROM recovery_codes WHERE user_id = $1")
	addRecovery    = pgdb.Written("INSERT INTO recovery_codes (user_id, hash) SELECT $1, unnest($2::bytea[])")
	countRecovery  = pgdb.Written("SELECT count(*) FROM recovery_codes WHERE user_id = $1")
	useRecovery    = pgdb.Written("DELETE FROM recovery_codes WHERE user_id = $1 AND hash = $2")
)

type sessions struct{ pgdb.Rows[person.Session] }

func (s sessions) ByToken(ctx context.Context, hash token.Hash) (ports.SessionEntry, error) {
	type entry struct {
		Session     person.Session  `db:"session"`
		User        account.User    `db:"user"`
		Account     account.Account `db:"account"`
		Maintenance bool            `db:"maintenance"`
		Operator    bool            `db:"operator"`
		Passkey     bool            `db:"passkey"`
	}
	row, err := pgdb.One[entry](ctx, s.Session, sessionByToken, hash[:])
	return ports.SessionEntry(row), err
}

func (s sessions) Get(ctx context.Context, of id.SessionID) (person.Session, error) {
	return s.One(ctx, getSession, of)
}

func (s sessions) Lock(ctx context.Context, of id.SessionID) (person.Session, error) {
	return s.Locked(ctx, lockSession, of)
}

func (s sessions) Of(ctx context.Context, user id.UserID) ([]person.Session, error) {
	return s.All(ctx, sessionsOf, user)
}

func (s sessions) Touch(ctx context.Context, of id.SessionID, at time.Time) error {
	return s.Write(ctx, touchSession, of, at)
}

func (s sessions) EndAll(ctx context.Context, user id.UserID, but id.SessionID, now time.Time) error {
	return s.Write(ctx, endSessions, user, orNull(but), now)
}

func (s sessions) Forget(ctx context.Context, before time.Time, limit int) error {
	return s.Write(ctx, forgetSessions, before, before.Add(-person.Life), limit)
}

type credentials struct{ pgdb.Rows[person.Factor] }

func (c credentials) Lock(ctx context.Context, user id.UserID) (account.User, error) {
	return pgdb.Locked[account.User](ctx, c.Session, lockUser, user)
}

func (c credentials) SetPassword(ctx context.Context, user id.UserID, hash string) error {
	return c.MustChange(ctx, ports.ErrNoRow, setPassword, user, hash)
}

func (c credentials) SetLoggedIn(ctx context.Context, user id.UserID, at time.Time) error {
	return c.MustChange(ctx, ports.ErrNoRow, setLoggedIn, user, at)
}

func (c credentials) SetReset(ctx context.Context, r person.Reset) error {
	return resetTable.Add(ctx, c.Session, r)
}

func (c credentials) ResetByToken(ctx context.Context, hash token.Hash) (person.Reset, error) {
	return pgdb.One[person.Reset](ctx, c.Session, resetByToken, hash[:])
}

func (c credentials) RemoveReset(ctx context.Context, user id.UserID) error {
	return c.Write(ctx, removeReset, user)
}

func (c credentials) Factor(ctx context.Context, user id.UserID) (person.Factor, error) {
	return c.One(ctx, getFactor, user)
}

func (c credentials) SetFactor(ctx context.Context, f person.Factor) error { return c.Add(ctx, f) }

func (c credentials) SaveFactor(ctx context.Context, f person.Factor) error { return c.Save(ctx, f) }

func (c credentials) RemoveFactor(ctx context.Context, user id.UserID) error {
	if err := c.Write(ctx, removeFactor, user); err != nil {
		return err
	}
	return c.Write(ctx, removeRecovery, user)
}

func (c credentials) SetRecovery(ctx context.Context, user id.UserID, codes []token.Hash) error {
	if err := c.Write(ctx, removeRecovery, user); err != nil {
		return err
	}
	hashes := make(pq.ByteaArray, len(codes))
	for i, code := range codes {
		hashes[i] = code[:]
	}
	return c.Write(ctx, addRecovery, user, hashes)
}

func (c credentials) Recovery(ctx context.Context, user id.UserID) (int, error) {
	return pgdb.One[int](ctx, c.Session, countRecovery, user)
}

func (c credentials) UseRecovery(ctx context.Context, user id.UserID, code token.Hash) error {
	return c.MustChange(ctx, ports.ErrNoRow, useRecovery, user, code[:])
}
