// Package extensions looks after the extensions of customers' databases: which there are, and that they are installed and
// upgraded with the rights of a database's owner and no others.
//
// The session of a change is that of a login made for it, which has what the owner has and nothing else, and acts as the owner.
// Code of the customer's that ran in it would have the owner's rights, and there is no way back from it to the agent's. No
// setting that the owner has made for their login holds there.
//
// The script of an extension that PostgreSQL trusts runs as the first superuser, whoever asks for it. PostgreSQL sees to it that
// no name in a script is taken for one of a customer's objects. An owner can install these extensions without this service too:
// a hole in that would be none of this service's making.
package extensions

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/extension"
)

// The catalogs are named with their schema, so that the answer is right with any search_path. A server's control file may name a
// default version of which it has no script: that is none to be trusted.
const listQuery = `SELECT n.name, a.name IS NOT NULL, coalesce(v.trusted, false), coalesce(a.default_version, ''),
		coalesce(e.extversion, ''), coalesce(s.nspname, ''), pg_catalog.current_setting('server_version')
	FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY n (name, place)
	LEFT JOIN pg_catalog.pg_available_extensions a ON a.name = n.name
	LEFT JOIN pg_catalog.pg_available_extension_versions v ON v.name = n.name AND v.version = a.default_version
	LEFT JOIN pg_catalog.pg_extension e ON e.extname = n.name
	LEFT JOIN pg_catalog.pg_namespace s ON s.oid = e.extnamespace
	ORDER BY n.place`

// List reads how the extensions stand in the database of a session. It reads the catalogs and the server's files, and runs
// nothing of a customer's.
func List(ctx context.Context, q pg.Querier) (list command.ExtensionList, err error) {
	err = pg.Each(ctx, q, func(rows *sql.Rows) error {
		var e command.ExtensionEntry
		err := rows.Scan(&e.Name, &e.Available, &e.Trusted, &e.DefaultVersion, &e.InstalledVersion, &e.Schema, &list.ServerVersion)
		list.Entries = append(list.Entries, e)
		return err
	}, listQuery, pq.Array(extension.Names))
	return list, err
}

// catalogTime bounds the look at the extensions of one database, with the wait for a connection.
const catalogTime = 5 * time.Second

// Extensions lists how the extensions stand in a database.
func (c *Changer) Extensions(ctx context.Context, q command.Extensions) (list command.ExtensionList, err error) {
	ctx, cancel := context.WithTimeout(ctx, catalogTime)
	defer cancel()
	d, err := c.ledger.InService(ctx, string(q.DatabaseID))
	if err != nil {
		return list, err
	}
	err = c.ledger.Looking.Run(ctx, func() error {
		return c.ledger.Inside.Run(ctx, func() (err error) {
			conn, err := c.ledger.Server().Open(d.Name)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, conn.Close()) }()
			list, err = List(ctx, conn)
			return err
		})
	})
	return list, err
}
