package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// plainSQL makes databases as the same login as the agent's and on the same server, with SQL alone. What counts as its time: all
// six roles with verifiers in one transaction, CREATE DATABASE from template0 under a temporary name, the rights inside it in one
// transaction over a connection opened for that, and grants, limit and rename in one transaction. The statements are sent one
// after the other, over one connection that is open already. What does not count: verifiers are computed before. It records
// nothing anywhere, tells PgBouncer nothing, and proves no log-in.
type plainSQL struct {
	agent       *sql.DB // one connection, to the maintenance database
	super       *sql.DB // drops, between the measurements
	maintenance *sql.DB
	metadata    *sql.DB
	inside      func(database string) string
	verifier    string
}

func newPlainSQL(ctx context.Context, b *bench) (*plainSQL, error) {
	secrets, err := setup.ReadCredentials(b.stack.CredentialsFile())
	if err != nil {
		return nil, err
	}
	server := b.stack.Server
	h := &plainSQL{
		inside: func(database string) string {
			return server.URLFor(setup.AgentLogin, secrets.AgentPassword, url.PathEscape(database))
		},
		verifier: credential.Verifier("a password of somebody", [16]byte{1}, credential.Iterations),
	}
	for _, pool := range []struct {
		db  **sql.DB
		url string
	}{
		{&h.agent, h.inside(setup.MaintenanceDatabase)}, {&h.super, server.URL("postgres")},
		{&h.maintenance, server.URL(setup.MaintenanceDatabase)}, {&h.metadata, b.stack.MetadataURL()},
	} {
		if *pool.db, err = sql.Open("postgres", pool.url); err != nil {
			return nil, err
		}
		(*pool.db).SetMaxOpenConns(1)
		if err := (*pool.db).PingContext(ctx); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func (h *plainSQL) close() {
	for _, db := range []*sql.DB{h.agent, h.super, h.maintenance, h.metadata} {
		_ = db.Close() // nothing was written that is still needed
	}
}

// throughAPI is a maker.
func (h *plainSQL) throughAPI(ctx context.Context, b *bench, name string) (func(context.Context) error, error) {
	made, err := b.client.create(ctx, name)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return h.dropMade(ctx, made.ID, name) }, nil
}

// dropMade removes a database that was made through the API.
func (h *plainSQL) dropMade(ctx context.Context, db id.DatabaseID, name string) error {
	_, forgotten := h.metadata.ExecContext(ctx, "DELETE FROM databases WHERE id = $1", db)
	_, cleared := h.maintenance.ExecContext(ctx, "BEGIN;DELETE FROM pooler.gate WHERE database = "+pq.QuoteLiteral(name)+
		";DELETE FROM ledger.role WHERE database_id = "+pq.QuoteLiteral(string(db))+
		";DELETE FROM ledger.database WHERE id = "+pq.QuoteLiteral(string(db))+";COMMIT")
	return errors.Join(forgotten, cleared, h.drop(ctx, name, database.RoleNames(db, name)))
}

// withSQL is a maker.
func (h *plainSQL) withSQL(ctx context.Context, _ *bench, name string) (func(context.Context) error, error) {
	names := database.RoleNames(id.DatabaseID(uuid.NewString()), name)
	temporary := "tmp_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	for _, step := range []func() error{
		func() error { return transact(ctx, h.agent, h.roles(names)) },
		func() error {
			return run(ctx, h.agent, "CREATE DATABASE "+ident(temporary)+" OWNER "+ident(names.Holder)+
				" TEMPLATE template0 ENCODING 'UTF8'")
		},
		func() error { return h.harden(ctx, temporary, names) },
		func() error { return transact(ctx, h.agent, finish(temporary, names)) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error { return h.drop(ctx, name, names) }, nil
}

func (h *plainSQL) harden(ctx context.Context, temporary string, n database.Names) error {
	db, err := sql.Open("postgres", h.inside(temporary))
	if err != nil {
		return err
	}
	return errors.Join(transact(ctx, db, rights(temporary, n)), db.Close())
}

func (h *plainSQL) roles(n database.Names) []string {
	const plain = " NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT NOREPLICATION NOBYPASSRLS"
	var s []string
	for _, name := range []string{n.Holder, n.ReadGroup, n.WriteGroup} {
		s = append(s, "CREATE ROLE "+ident(name)+" NOLOGIN"+plain)
	}
	for _, name := range []string{n.Owner, n.Runtime, n.Readonly} {
		s = append(s, "CREATE ROLE "+ident(name)+" LOGIN"+plain+" PASSWORD "+pq.QuoteLiteral(h.verifier))
	}
	return append(s,
		"GRANT "+ident(n.WriteGroup)+" TO "+ident(n.Runtime)+" WITH INHERIT TRUE, SET FALSE",
		"GRANT "+ident(n.ReadGroup)+" TO "+ident(n.Readonly)+" WITH INHERIT TRUE, SET FALSE")
}

func rights(temporary string, n database.Names) []string {
	db, owner, read, write := ident(temporary), ident(n.Owner), ident(n.ReadGroup), ident(n.WriteGroup)
	later := "ALTER DEFAULT PRIVILEGES FOR ROLE " + owner + " GRANT "
	return []string{
		"REVOKE CONNECT, TEMPORARY ON DATABASE " + db + " FROM PUBLIC",
		"GRANT CONNECT, CREATE, TEMPORARY ON DATABASE " + db + " TO " + owner + " WITH GRANT OPTION",
		"ALTER SCHEMA public OWNER TO " + owner,
		"GRANT USAGE ON SCHEMA public TO " + read + "," + write,
		later + "USAGE ON SCHEMAS TO " + read + "," + write,
		later + "SELECT ON TABLES TO " + read,
		later + "SELECT, INSERT, UPDATE, DELETE ON TABLES TO " + write,
		later + "SELECT ON SEQUENCES TO " + read,
		later + "USAGE, SELECT ON SEQUENCES TO " + write,
	}
}

func finish(temporary string, n database.Names) []string {
	db := ident(temporary)
	return []string{
		"SET LOCAL ROLE " + ident(n.Owner),
		"GRANT CONNECT ON DATABASE " + db + " TO " + ident(n.Runtime) + "," + ident(n.Readonly),
		"RESET ROLE",
		"ALTER DATABASE " + db + " CONNECTION LIMIT 100",
		"ALTER DATABASE " + db + " RENAME TO " + ident(n.Owner),
	}
}

// drop removes a database and its roles. The database's name is its owner's.
func (h *plainSQL) drop(ctx context.Context, name string, n database.Names) error {
	if err := run(ctx, h.super, "DROP DATABASE "+ident(name)+" WITH (FORCE)"); err != nil {
		return err
	}
	roles := []string{n.Owner, n.Runtime, n.Readonly, n.Holder, n.ReadGroup, n.WriteGroup}
	for i, role := range roles {
		roles[i] = ident(role)
	}
	return run(ctx, h.super, "DROP ROLE "+strings.Join(roles, ","))
}

// transact sends statements one after the other, in one transaction.
func transact(ctx context.Context, db *sql.DB, statements []string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func run(ctx context.Context, db *sql.DB, statements string) error {
	_, err := db.ExecContext(ctx, statements)
	return err
}

func ident(name string) string { return pq.QuoteIdentifier(name) }
