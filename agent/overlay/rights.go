package overlay

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// The bounds of a look at what stands inside one database, with the wait for a connection. An owner can make it wait, by a lock
// or by very many grants: so long other looks wait too, and commands of that one database.
const (
	rightsTime      = 5 * time.Second
	rightsInTime    = 3 * time.Second // from the beginning of the log-in
	rightsStatement = "1s"
	rightsLock      = "200ms"
)

// Rights lists what stands inside a database of the rights that it was given when it was made. It leaves a database alone that a
// command is at work on.
func (x *Overlay) Rights(ctx context.Context, q command.AskRights) (has command.Rights, err error) {
	ctx, cancel := context.WithTimeout(ctx, rightsTime)
	defer cancel()
	err = x.ledger.Looking.Run(ctx, func() error {
		return x.ledger.Inside.Run(ctx, func() (err error) {
			unlock := x.ledger.Locks.Try(ledger.DatabaseResource(string(q.DatabaseID)))
			if unlock == nil {
				has.Unread = "work is under way on it"
				return nil
			}
			defer unlock()
			has, err = x.rights(ctx, string(q.DatabaseID))
			return err
		})
	})
	return has, err
}

func (x *Overlay) rights(ctx context.Context, db string) (has command.Rights, err error) {
	d, err := x.ledger.InService(ctx, db)
	if err != nil {
		return has, err
	}
	within, cancel := context.WithTimeout(ctx, rightsInTime)
	defer cancel()
	has, err = rightsIn(within, x.server, d)
	if err == nil && has.Overlay != nil {
		var groups []string
		groups, err = x.StandingGroups(within, d)
		*has.Overlay = *has.Overlay && len(groups) == 2
	}
	switch why := obstacle(err); {
	case why != "":
		return command.Rights{Unread: why}, nil
	case err != nil && within.Err() != nil && ctx.Err() == nil: // also where a lock keeps the log-in from its end
		return command.Rights{Unread: tooLong}, nil
	}
	if err == nil && has.PublicOwner != "" {
		const query = `SELECT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = $1 AND (
			EXISTS (SELECT FROM ledger.role l WHERE l.oid = r.oid AND l.part IN (` + ledger.LoginParts + `))
			OR EXISTS (SELECT FROM ledger.dead_role l WHERE l.oid = r.oid)))`
		has.PublicOwnerLogin, err = pg.One[bool](ctx, x.db, query, has.PublicOwner)
	}
	return has, err
}

// obstacle says what keeps the agent from looking into a database now, where PostgreSQL itself does not; empty: nothing does.
func obstacle(err error) string {
	switch {
	case pg.InTheWay(err):
		return "somebody's lock is in the way"
	case pq.As(err, pqerror.QueryCanceled) != nil:
		return tooLong
	case pq.As(err, pqerror.TooManyConnections) != nil:
		return "it takes no more connections"
	case pq.As(err, pqerror.ObjectNotInPrerequisiteState, pqerror.InvalidCatalogName) != nil:
		return "nobody may connect to it"
	}
	return ""
}

const tooLong = "it takes too long"

// rightsQuery reads the owner of the schema public, and the rights of groups ($1) there and on what a role ($2) makes later. All
// names have their schema, so that nothing of a customer's is called. A right counts once, whoever granted it.
const rightsQuery = `SELECT g.rolname, r.on_what,
		pg_catalog.array_agg(DISTINCT pg_catalog.lower(r.privilege) ORDER BY pg_catalog.lower(r.privilege))
	FROM (
		SELECT a.grantee, 'schema public' AS on_what, a.privilege_type AS privilege
			FROM pg_catalog.pg_namespace n, pg_catalog.aclexplode(n.nspacl) a WHERE n.nspname = 'public'
		UNION ALL
		SELECT a.grantee, CASE d.defaclobjtype WHEN 'n' THEN 'later schemas' WHEN 'r' THEN 'later tables' ELSE 'later sequences' END,
			a.privilege_type
			FROM pg_catalog.pg_default_acl d, pg_catalog.aclexplode(d.defaclacl) a
			WHERE d.defaclnamespace = 0 AND d.defaclobjtype IN ('n', 'r', 'S')
				AND d.defaclrole = (SELECT o.oid FROM pg_catalog.pg_roles o WHERE o.rolname = $2)
	) r JOIN pg_catalog.pg_roles g ON g.oid = r.grantee
	WHERE g.rolname = ANY ($1) GROUP BY 1, 2 ORDER BY 1, 2`

const publicOwner = `SELECT coalesce((SELECT pg_catalog.pg_get_userbyid(n.nspowner)
	FROM pg_catalog.pg_namespace n WHERE n.nspname = 'public'), '')`

// rightsIn reads the rights inside a database, in a session that can write nothing and has bounds from its beginning.
func rightsIn(ctx context.Context, s ledger.Server, d ledger.Database) (has command.Rights, err error) {
	config := s.Config(d.Name)
	config.Runtime[ledger.ReadOnlyDefault], config.Runtime["search_path"] = "on", "pg_catalog,pg_temp"
	config.Runtime[ledger.StatementTimeout], config.Runtime[ledger.LockTimeout] = rightsStatement, rightsLock
	connector, err := pq.NewConnectorConfig(config)
	if err != nil {
		return has, err
	}
	conn := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, conn.Close()) }()
	conn.SetMaxOpenConns(1)
	if has.PublicOwner, err = pg.One[string](ctx, conn, publicOwner); err != nil {
		return has, err
	}
	names := database.RoleNames(id.DatabaseID(d.ID), d.Name)
	if d.RoleModel == string(database.SingleLogin) {
		to, err := unmarked(ctx, conn, names)
		if err != nil {
			return has, err
		}
		whole := len(to) == 0
		has.Overlay = &whole
	}
	err = pg.Each(ctx, conn, func(rows *sql.Rows) error {
		var g command.GroupRight
		err := rows.Scan(&g.Role, &g.On, (*pq.StringArray)(&g.Privileges))
		has.Groups = append(has.Groups, g)
		return err
	}, rightsQuery, pq.StringArray{names.ReadGroup, names.WriteGroup}, names.Owner)
	return has, err
}
