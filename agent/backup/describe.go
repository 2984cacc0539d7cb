package backup

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/stored"
	"github.com/pgherd/pgherd/core/backup"
)

//go:embed roles.sql
var readGrants string

// describe fills in the parts of the manifest that come from the catalogs, in the snapshot's transaction.
func describe(ctx context.Context, tx *sql.Tx, logins []string, m *backup.Manifest) (err error) {
	const query = `SELECT current_setting('server_version'), pg_database_size(current_database())`
	if err = tx.QueryRowContext(ctx, query).Scan(&m.ServerVersion, &m.DatabaseBytes); err != nil {
		return fmt.Errorf("read server version and size: %w", err)
	}
	if m.Contents, err = content.Observe(ctx, tx); err != nil {
		return err
	}
	if m.Settings, err = settings(ctx, tx, logins); err != nil {
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

// settings are the defaults of the database and of its logins in it. Those of other logins are none of its owner's. A login that
// has stored more than is read has one without a name.
func settings(ctx context.Context, tx *sql.Tx, logins []string) (list []backup.Setting, err error) {
	const query = `SELECT d.oid, ARRAY(SELECT 0 UNION SELECT r.oid::bigint FROM pg_roles r WHERE r.rolname = ANY ($1))
		FROM pg_database d WHERE d.datname = current_database()`
	var database uint32
	var roles pq.Int64Array
	if err := tx.QueryRowContext(ctx, query, pq.Array(logins)).Scan(&database, &roles); err != nil {
		return nil, fmt.Errorf("read database settings: %w", err)
	}
	all, err := stored.Settings(ctx, tx, database, roles)
	if err != nil {
		return nil, fmt.Errorf("read database settings: %w", err)
	}
	for _, s := range all {
		list = append(list, backup.Setting{Login: s.Role, Name: s.Name, Value: s.Value})
	}
	return list, nil
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
	err := content.ReadWithin(ctx, q, "the privileges in it", content.Most, readGrants, func(rows *sql.Rows) (int, error) {
		var g backup.Grant
		err := rows.Scan(&g.Kind, &g.Object, &g.Grantor, &g.Grantee, pq.Array(&g.Privileges), pq.Array(&g.WithOption))
		list = append(list, g)
		return content.SizeOf(g), err
	})
	return list, err
}
