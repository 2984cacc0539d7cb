package inventory

import (
	"context"
	"database/sql"
	"fmt"
	"net/netip"
	"strings"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// parameters are those that the service sets for everybody in a database.
var parameters = pq.StringArray{
	"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "default_transaction_read_only",
}

// databasesQuery reads a part of the ledger's databases. Rights count as far as the owner in PostgreSQL has granted them: what
// logins grant is theirs.
const databasesQuery = `SELECT d.id, d.name, d.role_model, d.connection_cap, d.made_by, d.account_id, d.oid IS NOT NULL,
		encode(sha256(d.backup_key), 'hex'),
		coalesce(d.isolated, ''), d.open,
		EXISTS (SELECT FROM pooler.shut s WHERE s.database = d.name), d.networks::text[], d.timeouts, d.read_only,
		p.oid IS NOT NULL, coalesce(p.datname, ''), coalesce(pg_get_userbyid(p.datdba), ''), coalesce(p.datconnlimit, 0),
		coalesce(p.datallowconn, false),
		ARRAY(SELECT lower(a.privilege_type) FROM aclexplode(coalesce(p.datacl, acldefault('d', p.datdba))) a
			WHERE a.grantee = 0 AND a.grantor = p.datdba ORDER BY 1),
		ARRAY(SELECT lower(a.privilege_type) FROM aclexplode(coalesce(p.datacl, acldefault('d', p.datdba))) a
			JOIN ledger.role l ON l.oid = a.grantee AND l.database_id = d.id AND l.part = 'owner'
			WHERE a.grantor = p.datdba AND a.is_grantable ORDER BY 1),
		ARRAY(SELECT e FROM pg_db_role_setting s, unnest(s.setconfig) e
			WHERE s.setdatabase = p.oid AND s.setrole = 0 AND split_part(e, '=', 1) = ANY ($3))
	FROM (SELECT * FROM ledger.database WHERE id COLLATE "C" > $1 ORDER BY id COLLATE "C" LIMIT $2) d
	LEFT JOIN pg_database p ON p.oid = d.oid ORDER BY d.id COLLATE "C"`

// Databases answers with the databases of the ledger.
func (l *Lister) Databases(ctx context.Context, q command.AskInventory) (command.Inventory, error) {
	return atOnce(ctx, l, func(ctx context.Context, tx *sql.Tx) (part command.Inventory, err error) {
		part.Databases = []command.InventoryDatabase{}
		err = pg.Each(ctx, tx, func(rows *sql.Rows) error {
			d, err := scanDatabase(rows)
			part.Databases = append(part.Databases, d)
			return err
		}, databasesQuery, string(q.After), command.InventoryAtOnce, parameters)
		if err != nil {
			return part, err
		}
		part.More = len(part.Databases) == command.InventoryAtOnce
		return part, addRoles(ctx, tx, part.Databases)
	})
}

func scanDatabase(rows *sql.Rows) (d command.InventoryDatabase, err error) {
	var s command.ActualDatabase
	var stands bool
	var networks, public, login, settings pq.StringArray
	var timeouts pq.Int64Array
	err = rows.Scan(&d.DatabaseID, &d.Name, &d.RoleModel, &d.ConnectionCap, &d.MadeBy, &d.AccountID, &d.Made,
		&d.BackupKeyMark, &d.Isolated, &d.Open, &d.Closed, &networks, &timeouts, &d.ReadOnly, &stands, &s.Name, &s.Owner,
		&s.ConnectionLimit, &s.AllowConnections,
		&public, &login, &settings)
	if err != nil {
		return d, err
	}
	for _, text := range networks {
		n, err := netip.ParsePrefix(text)
		if err != nil {
			return d, fmt.Errorf("%q is no network", text)
		}
		d.Networks = append(d.Networks, n)
	}
	if len(timeouts) == 3 {
		d.Timeouts = &command.Timeouts{StatementMs: timeouts[0], LockMs: timeouts[1], IdleInTransactionMs: timeouts[2]}
	}
	s.PublicRights, s.LoginRights = public, login
	for _, one := range settings {
		name, value, _ := strings.Cut(one, "=")
		if s.Settings == nil {
			s.Settings = map[string]string{}
		}
		s.Settings[name] = value
	}
	if stands {
		d.Actual = &s
	}
	d.Roles = []command.InventoryRole{}
	return d, nil
}

// rolesQuery reads the roles of databases. A gate of another database is none.
const rolesQuery = `SELECT l.database_id, l.name, l.part, l.connection_limit, l.enabled, l.credential_generation,
		CASE g.open WHEN true THEN 'open' WHEN false THEN 'closed' ELSE '' END,
		r.oid IS NOT NULL, coalesce(r.rolcanlogin, false), coalesce(r.rolconnlimit, 0), nullif(r.rolvaliduntil, 'infinity'),
		array_remove(ARRAY[CASE WHEN r.rolsuper THEN 'superuser' END, CASE WHEN r.rolcreatedb THEN 'createdb' END,
			CASE WHEN r.rolcreaterole THEN 'createrole' END, CASE WHEN r.rolreplication THEN 'replication' END,
			CASE WHEN r.rolbypassrls THEN 'bypassrls' END, CASE WHEN NOT r.rolinherit THEN 'noinherit' END], NULL),
		CASE WHEN g.login IS NULL THEN '' ELSE coalesce(pooler.verifier_mark(l.name), '') END
	FROM ledger.role l JOIN ledger.database d ON d.id = l.database_id
	LEFT JOIN pg_roles r ON r.oid = l.oid AND r.rolname = l.name
	LEFT JOIN pooler.gate g ON g.login = l.name AND g.database = d.name
	WHERE l.database_id = ANY ($1) ORDER BY l.database_id, l.name`

// memberOfQuery reads which roles the roles of databases are members of, and membersQuery their members. A role may be granted
// by several: what counts is what it may do. The agent is a member of all that it has made.
const (
	memberOfQuery = `SELECT l.name, g.rolname, bool_or(m.inherit_option), bool_or(m.set_option), bool_or(m.admin_option)
		FROM ledger.role l JOIN pg_auth_members m ON m.member = l.oid JOIN pg_roles g ON g.oid = m.roleid
		WHERE l.database_id = ANY ($1) GROUP BY 1, 2 ORDER BY 1, 2`
	membersQuery = `SELECT DISTINCT l.name, r.rolname
		FROM ledger.role l JOIN pg_auth_members m ON m.roleid = l.oid JOIN pg_roles r ON r.oid = m.member
		WHERE l.database_id = ANY ($1) AND r.rolname <> current_user ORDER BY 1, 2`
)

// addRoles adds their roles to databases.
func addRoles(ctx context.Context, tx *sql.Tx, list []command.InventoryDatabase) error {
	at, ids := map[id.DatabaseID]int{}, pq.StringArray{}
	for i, d := range list {
		at[d.DatabaseID] = i
		ids = append(ids, string(d.DatabaseID))
	}
	actual := map[string]*command.ActualRole{}
	err := pg.Each(ctx, tx, func(rows *sql.Rows) error {
		of, r, err := scanRole(rows)
		if r.Actual != nil {
			actual[r.Name] = r.Actual
		}
		d := &list[at[of]]
		d.Roles = append(d.Roles, r)
		return err
	}, rolesQuery, ids)
	if err != nil {
		return err
	}
	err = pg.Each(ctx, tx, func(rows *sql.Rows) error {
		var name string
		var in command.Membership
		err := rows.Scan(&name, &in.Role, &in.Inherit, &in.Set, &in.Admin)
		if r := actual[name]; r != nil {
			r.MemberOf = append(r.MemberOf, in)
		}
		return err
	}, memberOfQuery, ids)
	if err != nil {
		return err
	}
	return pg.Each(ctx, tx, func(rows *sql.Rows) error {
		var name, member string
		err := rows.Scan(&name, &member)
		if r := actual[name]; r != nil {
			r.Members = append(r.Members, member)
		}
		return err
	}, membersQuery, ids)
}

func scanRole(rows *sql.Rows) (of id.DatabaseID, r command.InventoryRole, err error) {
	var s command.ActualRole
	var stands bool
	var until sql.NullTime
	var powers pq.StringArray
	err = rows.Scan(&of, &r.Name, &r.Part, &r.Limit, &r.Enabled, &r.CredentialGeneration, &r.Gate,
		&stands, &s.MayLogIn, &s.ConnectionLimit, &until, &powers, &s.VerifierMark)
	s.Powers = powers
	if until.Valid {
		at := until.Time.UTC()
		s.ValidUntil = &at
	}
	if stands {
		r.Actual = &s
	}
	return of, r, err
}
