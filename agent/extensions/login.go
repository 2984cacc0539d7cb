package extensions

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

const mark joblogin.Mark = "pgherd extension login "

// login is the name of the one that makes an operation's change.
func login(op id.OperationID) string { return setup.ExtensionPrefix + id.Compact(op) }

func owner(j jobs.Job) string { return database.RoleNames(j.DatabaseID, j.Database).Owner }

// makeLogin makes the login, as a member of the owner. It connects by the owner's right, so no row of the database is locked,
// which the owner may hold; and where customers' sessions fill the server, by one of the connections that are kept for the agent.
func (c *Changer) makeLogin(ctx context.Context, j jobs.Job) (password string, err error) {
	name := pq.QuoteIdentifier(login(j.OperationID))
	return mark.Make(ctx, c.admin, login(j.OperationID),
		`GRANT `+pq.QuoteIdentifier(owner(j))+` TO `+name+` WITH INHERIT TRUE, SET TRUE`,
		`GRANT pg_use_reserved_connections TO `+name) // last: every job's login needs that lock
}

// endSession ends what an earlier attempt at the operation still does, and returns when that is over.
func (c *Changer) endSession(ctx context.Context, op id.OperationID) error {
	left, err := joblogin.EndSessions(ctx, c.admin, joblogin.RunPatience, `usename = $1`, login(op))
	if err == nil && left > 0 {
		err = fmt.Errorf("the session of %s does not end", login(op))
	}
	return err
}

// dropLogin ends the login of an operation; it is no error if there is none. A customer who has just granted it something keeps
// nobody waiting: then it is retired.
func (c *Changer) dropLogin(ctx context.Context, op id.OperationID) error {
	found, err := mark.Exists(ctx, c.admin, login(op))
	if err != nil || !found {
		return err
	}
	if err := c.endSession(ctx, op); err != nil {
		return err
	}
	return joblogin.End(ctx, c.admin, login(op), joblogin.SweepPatience)
}

// Sweep drops the logins that agents before this one have left.
func (c *Changer) Sweep(ctx context.Context) error {
	const query = `SELECT substr(rolname, length('` + setup.ExtensionPrefix + `') + 1)::uuid::text FROM pg_roles
		WHERE rolname ~ '^` + setup.ExtensionPrefix + `[0-9a-f]{32}$'
			AND shobj_description(oid, 'pg_authid') = '` + string(mark) + `' || rolname ORDER BY 1`
	operations, err := pg.Column(ctx, c.admin, query)
	for _, text := range operations {
		op := id.OperationID(text)
		done := c.turns.Try(text)
		if done == nil {
			continue // a job of this agent has it
		}
		err = errors.Join(err, c.dropLogin(ctx, op))
		done()
	}
	return err
}

// The session of a change ends itself where nobody goes on with it, and no single statement of it takes longer.
const (
	statementTime = 30 * time.Second
	idleTime      = time.Minute
)

// session opens the connection of the login. Its settings are those of the service, whatever is set for the database: a default
// of it may be read-only, or a time too short, and a commit that is reported must last.
func (c *Changer) session(j jobs.Job, password string) (*sql.DB, error) {
	options := ""
	for _, set := range []struct{ name, value string }{
		{"search_path", "pg_catalog,pg_temp"}, {"default_transaction_read_only", "off"}, {"synchronous_commit", "on"},
		{"lock_timeout", milliseconds(c.LockWait)}, {"statement_timeout", milliseconds(statementTime)},
		{"idle_in_transaction_session_timeout", milliseconds(idleTime)}, {"idle_session_timeout", milliseconds(idleTime)},
	} {
		options += " -c " + set.name + "=" + set.value
	}
	server := c.ledger.Server()
	connector, err := pq.NewConnectorConfig(pq.Config{
		Host: server.Host, Port: uint16(server.Port), User: login(j.OperationID), Password: password, Database: j.Database,
		SSLMode: pq.SSLModeDisable, ApplicationName: "pgherd-extension-" + string(j.OperationID), ConnectTimeout: 10 * time.Second,
		ClientEncoding: "UTF8", Datestyle: "ISO, MDY", Options: options,
	})
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
