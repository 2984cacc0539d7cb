package settings

import (
	"context"
	"database/sql"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
)

// storedQuery reads what is stored for everybody and for the owner's login in a database ($1, $2), or also everywhere, and for
// its other logins ($3). Any login can store megabytes for itself, so only as much of a value is read as any of the service's
// could have, and only so many settings. A role's setting for the database comes before that for all of them, which it shadows.
const storedQuery = `WITH p AS (SELECT l.part, l.oid, r.rolname AS name FROM ledger.role l JOIN pg_roles r ON r.oid = l.oid
		WHERE l.database_id = $2 AND (l.part = 'owner' OR $3 AND l.part IN (` + ledger.LoginParts + `)))
	SELECT p.part, p.name, s.setdatabase <> 0, split_part(e, '=', 1), left(substr(e, strpos(e, '=') + 1), 64)
	FROM pg_db_role_setting s LEFT JOIN p ON p.oid = s.setrole, unnest(s.setconfig) whole, left(whole, 128) e
	WHERE (s.setdatabase = $1::oid OR $3 AND s.setdatabase = 0) AND (s.setrole = 0 OR s.setrole IN (SELECT p.oid FROM p))
	  AND split_part(e, '=', 1) = ANY ($4)
	ORDER BY coalesce(p.part, 'owner') <> 'owner', p.name, 4, s.setdatabase = 0 LIMIT $5`

// settingsAtOnce bounds how many settings are read. Everybody's and the owner's come first, and are few.
const settingsAtOnce = 100

// settingsSeen reads what is set for a database and its owner there, by anybody, and what of it the service has set; of everyone,
// also what is set for its other logins, and everywhere.
func (x *Setter) settingsSeen(ctx context.Context, d ledger.Database, everyone bool) (seen settingsSeen, err error) {
	if seen.ours, seen.owner, err = x.settingsOf(ctx, d); err != nil {
		return seen, err
	}
	err = pg.Each(ctx, x.db, func(rows *sql.Rows) error {
		var part, role sql.NullString
		var s storedSetting
		err := rows.Scan(&part, &role, &s.here, &s.name, &s.value)
		s.part, s.role = part.String, role.String
		seen.all = append(seen.all, s)
		return err
	}, storedQuery, d.OID, d.ID, everyone, settingNames, settingsAtOnce)
	return seen, err
}

// settingsOf reads what the service has set, and whether the owner's login is one of ours.
func (x *Setter) settingsOf(ctx context.Context, d ledger.Database) (s settings, owner bool, err error) {
	const query = `SELECT timeouts IS NOT NULL, coalesce(timeouts[1], 0), coalesce(timeouts[2], 0), coalesce(timeouts[3], 0),
			read_only, EXISTS (SELECT FROM ledger.role p JOIN pg_roles r ON r.oid = p.oid AND r.rolname = p.name
				WHERE p.database_id = $1 AND p.part = 'owner')
		FROM ledger.database WHERE id = $1`
	var set bool
	var t command.Timeouts
	err = x.db.QueryRowContext(ctx, query, d.ID).Scan(
		&set, &t.StatementMs, &t.LockMs, &t.IdleInTransactionMs, &s.readOnly, &owner)
	if set {
		s.timeouts = &t
	}
	return s, owner, err
}
