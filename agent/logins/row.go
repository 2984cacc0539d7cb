package logins

import (
	"context"
	"database/sql"
	"errors"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// loginRow is a login of a database that stands, as the ledger has it.
type loginRow struct {
	db   ledger.Database
	name string

	part    string // empty: the ledger has no such login of this database
	oid     uint32
	exists  bool // a role of this name has this oid; any other is none of ours
	enabled bool // may log in while the database is open
	limit   int  // how many server connections the login may have; 0: none of its own
	// credentialGeneration is that of the last rotation.
	credentialGeneration int64
}

// login reads a login of a database that is in service.
func (x *Logins) login(ctx context.Context, databaseID, username string) (loginRow, error) {
	l, err := x.anyLogin(ctx, databaseID, username)
	if err == nil {
		err = l.db.Serves()
	}
	return l, err
}

// anyLogin reads a login of a database, also of one that is out of service.
func (x *Logins) anyLogin(ctx context.Context, databaseID, username string) (loginRow, error) {
	const query = `SELECT ` + ledger.DatabaseColumns + `, coalesce(p.part, ''), coalesce(p.oid, 0), r.oid IS NOT NULL,
			coalesce(p.enabled, false), coalesce(p.credential_generation, 0), coalesce(p.connection_limit, 0)
		FROM ledger.database d LEFT JOIN ledger.role p ON p.database_id = d.id AND p.name = $2 AND p.part IN (` + ledger.LoginParts + `)
		LEFT JOIN pg_roles r ON r.oid = p.oid AND r.rolname = p.name WHERE d.id = $1`
	l := loginRow{name: username}
	err := x.db.QueryRowContext(ctx, query, databaseID, username).Scan(append(l.db.Columns(),
		&l.part, &l.oid, &l.exists, &l.enabled, &l.credentialGeneration, &l.limit)...)
	if errors.Is(err, sql.ErrNoRows) {
		err = ledger.NoDatabase(databaseID)
	}
	return l, err
}

// names are those of the database's roles.
func (l loginRow) names() database.Names { return l.db.Names() }

// model is that of the database's additional roles.
func (l loginRow) model() role.Model { return role.ModelOf(database.RoleModel(l.db.RoleModel)) }

// group is the role whose rights an access profile inherits; empty where it inherits none.
func (l loginRow) group(p role.AccessProfile) string {
	switch p {
	case role.ReadOnly:
		return l.names().ReadGroup
	case role.ReadWrite:
		return l.names().WriteGroup
	case role.Custom:
	}
	return ""
}

// observe looks at the role itself. The verifier and the group are those that are asked about.
func (x *Logins) observe(ctx context.Context, l loginRow, verifier, group string) (role.Login, error) {
	if !l.exists {
		return role.Login{}, nil
	}
	const query = `SELECT r.rolcanlogin, r.rolconnlimit, nullif(r.rolvaliduntil, 'infinity'),
			pooler.has_verifier(r.rolname, nullif($3, '')), pooler.has_verifier(r.rolname, NULL),
			EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid
				WHERE m.member = r.oid AND g.rolname = $4 AND m.inherit_option),
			EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid
				WHERE m.member = r.oid AND (g.rolname <> $4 OR m.set_option OR m.admin_option)),
			r.rolsuper OR r.rolcreatedb OR r.rolcreaterole OR r.rolreplication OR r.rolbypassrls OR NOT r.rolinherit
		FROM pg_roles r WHERE r.oid = $1 AND r.rolname = $2`
	seen := role.Login{Present: true}
	var validUntil sql.NullTime
	var ours, none bool
	err := x.db.QueryRowContext(ctx, query, l.oid, l.name, verifier, group).
		Scan(&seen.MayLogIn, &seen.Limit, &validUntil, &ours, &none, &seen.InGroup, &seen.InOthers, &seen.Empowered)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return role.Login{}, nil
	case none:
		seen.Password = role.NoPassword
	case ours:
		seen.Password = role.OurPassword
	}
	if validUntil.Valid {
		seen.ValidUntil = &validUntil.Time
	}
	return seen, err
}

// observeAs is observe for a role with the rights of an access profile. Without a group of its own, it lacks none.
func (x *Logins) observeAs(ctx context.Context, l loginRow, verifier string, p role.AccessProfile) (role.Login, error) {
	group := l.group(p)
	seen, err := x.observe(ctx, l, verifier, group)
	seen.InGroup = seen.InGroup || group == ""
	return seen, err
}
