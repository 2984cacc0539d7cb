package backup

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/backup"
)

//go:embed roles.sql
var readGrants string

// describe fills in the parts of the manifest that come from the catalogs, in the snapshot's transaction.
func describe(ctx context.Context, tx *sql.Tx, logins []string, m *backup.Manifest) (err error) {
	if err = tx.QueryRowContext(ctx, `SHOW server_version`).Scan(&m.ServerVersion); err != nil {
		return fmt.Errorf("read server version: %w", err)
	}
	if m.Contents, err = content.Observe(ctx, tx); err != nil {
		return err
	}
	if m.Settings, err = settings(ctx, tx); err != nil {
		return err
	}
	if m.Logins, err = describeLogins(ctx, tx, logins); err != nil || len(m.Logins) == 0 {
		return err
	}
	if m.LargeObjects, err = content.LargeObjectAccess(ctx, tx); err != nil {
		return err
	}
	m.Grants, err = grants(ctx, tx)
	return err
}

// settings are the defaults of the database and of logins in it.
func settings(ctx context.Context, q pg.Querier) ([]backup.Setting, error) {
	var list []backup.Setting
	const query = `SELECT coalesce(rolname, ''), split_part(s, '=', 1), substr(s, strpos(s, '=') + 1)
		FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase AND datname = current_database()
		LEFT JOIN pg_roles r ON r.oid = setrole, unnest(setconfig) s ORDER BY 1, 2`
	err := pg.Read(ctx, q, "database settings", query, func(rows *sql.Rows) error {
		var s backup.Setting
		err := rows.Scan(&s.Login, &s.Name, &s.Value)
		list = append(list, s)
		return err
	})
	return list, err
}

func describeLogins(ctx context.Context, tx *sql.Tx, names []string) ([]backup.Login, error) {
	const query = `SELECT rolname, rolcanlogin, rolconnlimit, nullif(rolvaliduntil, 'infinity'),
		array(SELECT g.rolname FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid ORDER BY 1)
		FROM pg_roles r WHERE rolname = ANY($1) ORDER BY 1`
	rows, err := tx.QueryContext(ctx, query, pq.Array(names))
	if err != nil {
		return nil, fmt.Errorf("read logins: %w", err)
	}
	defer rows.Close()
	var list []backup.Login
	for rows.Next() {
		var l backup.Login
		if err := rows.Scan(&l.Name, &l.CanLogin, &l.ConnectionLimit, &l.ValidUntil, pq.Array(&l.MemberOf)); err != nil {
			return nil, fmt.Errorf("read logins: %w", err)
		}
		list = append(list, l)
	}
	return list, rows.Err()
}

func grants(ctx context.Context, q pg.Querier) ([]backup.Grant, error) {
	var list []backup.Grant
	err := pg.Read(ctx, q, "grants", readGrants, func(rows *sql.Rows) error {
		var g backup.Grant
		err := rows.Scan(&g.Kind, &g.Object, &g.Grantor, &g.Grantee, pq.Array(&g.Privileges), pq.Array(&g.WithOption))
		list = append(list, g)
		return err
	})
	return list, err
}
