package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/extension"
)

// onServer implements spec.OnServer on PostgreSQL itself.
type onServer struct{ apps applications }

// Owner implements spec.OnServer.
func (h onServer) Owner(db spec.Created, statement string) error {
	_, err := h.apps.Run(db.Login(), statement)
	for n := 0; err != nil && strings.Contains(err.Error(), concurrently) && n < 3; n++ { // as docs/use/roles.md says
		_, err = h.apps.Run(db.Login(), statement)
	}
	return err
}

// concurrently is what PostgreSQL refuses a GRANT with while the service changes the same rights.
const concurrently = "tuple concurrently updated"

// overriding is what an owner begins with whose database is full.
const overriding = "SET default_transaction_read_only = off"

// Grow implements spec.OnServer: with what does not compress, of which the database has some megabytes from the start.
func (h onServer) Grow(db spec.Created, bytes int64) error {
	_, err := h.apps.Run(db.Login(), overriding, "CREATE TABLE IF NOT EXISTS ballast (x bytea)",
		"ALTER TABLE ballast ALTER x SET STORAGE EXTERNAL", fmt.Sprintf(`INSERT INTO ballast
			SELECT convert_to(repeat(md5(i::text), 30000), 'UTF8')
			FROM generate_series(1, greatest(0, %d - pg_database_size(current_database())) / 900000 + 1) i`, bytes))
	return err
}

// Shrink implements spec.OnServer.
func (h onServer) Shrink(db spec.Created) error {
	_, err := h.apps.Run(db.Login(), overriding, "TRUNCATE ballast")
	return err
}

// Withdraw implements spec.OnServer.
func (h onServer) Withdraw(db spec.Created, username string) error {
	return h.Owner(db, "REVOKE CONNECT ON DATABASE "+pq.QuoteIdentifier(db.Name)+" FROM "+pq.QuoteIdentifier(username))
}

// awaitRole looks for a role without a pause, withdraws its CONNECT as soon as it is there, and stops looking when told to.
const awaitRole = `DO $$
	BEGIN
		WHILE NOT EXISTS (SELECT FROM pg_database, aclexplode(datacl) AS acl JOIN pg_roles AS r ON r.oid = acl.grantee
			WHERE datname = current_database() AND rolname = %s) LOOP
			PERFORM pg_sleep(0.001);
		END LOOP;
		REVOKE CONNECT ON DATABASE %s FROM %s;
	END $$`

// holdSetups makes the metadata wait, before a role is recorded as prepared, for whoever holds the advisory lock of its name.
const holdSetups = `
	CREATE FUNCTION hold_setup() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM pg_advisory_xact_lock(hashtext(NEW.username));
			RETURN NEW;
		END $$;
	CREATE TRIGGER hold_setup BEFORE UPDATE ON roles FOR EACH ROW WHEN (OLD.status = 'reserved' AND NEW.status = 'sql_ready')
		EXECUTE FUNCTION hold_setup()`

// WithdrawAtOnce implements spec.OnServer: the setup is held between the preparation of the role and its admission.
func (h onServer) WithdrawAtOnce(db spec.Created, username string) (end func() error, err error) {
	metadata, err := sql.Open("postgres", h.apps.r.MetadataURL())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	holder, err := metadata.Conn(ctx)
	if err == nil {
		_, err = holder.ExecContext(ctx, "SELECT pg_advisory_lock(hashtext($1))", username)
	}
	if err != nil {
		cancel()
		return nil, errors.Join(err, metadata.Close())
	}
	withdrawn := make(chan error, 1)
	go func() {
		_, err := h.apps.Run(db.Login(), fmt.Sprintf(
			awaitRole, pq.QuoteLiteral(username), pq.QuoteIdentifier(db.Name), pq.QuoteIdentifier(username)))
		_, released := holder.ExecContext(ctx, "SELECT pg_advisory_unlock(hashtext($1))", username)
		withdrawn <- errors.Join(err, released, holder.Close())
	}()
	return func() error {
		defer cancel()
		return errors.Join(<-withdrawn, metadata.Close())
	}, nil
}

// Entangle implements spec.OnServer.
func (h onServer) Entangle(in spec.Created, username string, tables int) error {
	var statements []string
	for n := range tables {
		table := fmt.Sprintf("public.tangle_%d", n)
		statements = append(statements, "CREATE TABLE "+table+" ()", "GRANT SELECT ON "+table+" TO "+pq.QuoteIdentifier(username))
	}
	_, err := h.apps.Run(in.Login(), statements...)
	return err
}

// Disentangle implements spec.OnServer.
func (h onServer) Disentangle(in spec.Created, _ string) error {
	tables, err := h.apps.Run(in.Login(), "SELECT relname FROM pg_class WHERE relname LIKE 'tangle\\_%' AND relkind = 'r'")
	for _, table := range tables {
		err = errors.Join(err, h.Owner(in, "DROP TABLE public."+pq.QuoteIdentifier(table)))
	}
	return err
}

// SetPassword implements spec.OnServer.
func (h onServer) SetPassword(l spec.Login, password string) error {
	_, err := h.apps.Run(l, "ALTER ROLE "+pq.QuoteIdentifier(l.Username)+" PASSWORD "+pq.QuoteLiteral(password))
	return err
}

// Obstruct implements spec.OnServer.
func (h onServer) Obstruct(username string, on bool) error {
	statement := "GRANT %s TO pgherd_agent WITH ADMIN TRUE, INHERIT TRUE, SET TRUE"
	if on {
		statement = "REVOKE ADMIN OPTION FOR %s FROM pgherd_agent CASCADE"
	}
	_, err := query(h.apps.r.Server.URL("postgres"), statementTime, fmt.Sprintf(statement, pq.QuoteIdentifier(username)))
	return err
}

// Identify implements spec.OnServer.
func (h onServer) Identify(db spec.Created) error {
	return h.Owner(db, "ALTER TABLE note REPLICA IDENTITY FULL")
}

// Keyless implements spec.OnServer.
func (h onServer) Keyless(db spec.Created) error {
	return h.Owner(db, "CREATE TABLE public.keyless (n int)")
}

// DropLogin implements spec.OnServer. Only the owner can take CONNECT back, who gave it: DROP OWNED does not.
func (h onServer) DropLogin(in spec.Created, username string) error {
	if err := h.Withdraw(in, username); err != nil {
		return err
	}
	name := pq.QuoteIdentifier(username)
	_, err := query(h.apps.r.Server.URL(in.Name), statementTime, "DROP OWNED BY "+name, "DROP ROLE "+name)
	return err
}

// OwnExtension implements spec.OnServer.
func (h onServer) OwnExtension(in spec.Created, name extension.Name, version, schema string) error {
	_, err := h.apps.Run(in.Login(), "CREATE SCHEMA IF NOT EXISTS "+schema,
		fmt.Sprintf("CREATE EXTENSION %s VERSION '%s' SCHEMA %s", name, version, schema))
	return err
}

// BlockExtension implements spec.OnServer: there is a type of the name already.
func (h onServer) BlockExtension(in spec.Created, on bool) error {
	if on {
		return h.Owner(in, "CREATE TYPE public.citext AS (n int)")
	}
	return h.Owner(in, "DROP TYPE public.citext")
}
