// Package setup is the only step that needs a superuser: it prepares a PostgreSQL server so that neither the agent nor
// PgBouncer nor any customer's login needs to be one.
package setup

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/credential"
)

// Names on every server. The underscore keeps them apart from customers' names.
const (
	AgentLogin          = "pgherd_agent"
	PoolerLogin         = "pgherd_pooler"
	PoolerAdmin         = "pgherd_pooler_admin" // in PgBouncer only
	MaintenanceDatabase = "pgherd_maintenance"
)

// The logins that an agent makes for single dumps, changes of extensions, and moves to other servers: how their names begin, and
// a regular expression for the names.
const (
	DumpPrefix      = "dump_"
	ExtensionPrefix = "ext_"
	MovePrefix      = "move_"
	JobLogins       = "^(" + DumpPrefix + "|" + ExtensionPrefix + "|" + MovePrefix + ")[0-9a-f]{32}$"
)

// Options is what Init needs to know.
type Options struct {
	// DSN is the superuser connection: an URL or key=value text. Its database should be postgres.
	DSN string
	// CredentialsFile is where the generated passwords are written, with mode 0600. An existing file keeps its passwords, and is
	// refused where the server's logins have others.
	CredentialsFile string
	// Peer, if not nil, is the system user as whom Init connects to PostgreSQL's socket: for a caller that is root, where
	// pg_hba.conf says peer. Linux only.
	Peer *FileOwner
	// NewPasswords makes a new file, where none may be yet, although the server's logins have passwords. Whoever uses those is cut
	// off.
	NewPasswords bool
	// CredentialsOwner, if not nil, becomes the owner of a new file: the system user of the agent.
	CredentialsOwner *FileOwner
	// Versions says what to do about a version with known holes.
	Versions floors.Policy
	// Languages says what to do about trusted procedural languages.
	Languages floors.Policy
	// Programs are the paths, or the names, of pg_dump and PgBouncer, whose versions are checked too. One that is not found is a
	// warning: the agent checks it when it starts.
	Programs []string
	// TempFileLimit becomes the server's temp_file_limit: a size such as 10GB, or -1 for no limit. Empty sets DefaultTempFileLimit
	// where nobody has set the parameter, and otherwise leaves it as it is.
	TempFileLimit string
	// LargestPlan is that of the largest database that the server must have connections for; empty means Business.
	LargestPlan account.Plan
	// Archive, if not nil, has the server keep an archive.
	Archive *Archive
}

// FileOwner is a system user.
type FileOwner struct{ UID, GID int }

// Report tells an administrator about problems that did not prevent the preparation.
type Report struct {
	Warnings []string
	// Restart says that PostgreSQL has to be restarted once, to keep an archive.
	Restart bool

	server floors.Version
}

//go:embed cluster.sql
var clusterSQL string

//go:embed ledger.sql
var ledgerSQL string

//go:embed ledger_functions.sql
var ledgerFunctionsSQL string

//go:embed server.sql
var serverSQL string

// Init prepares a server: the agent's login, the maintenance database with ledger and pooler schema, and the privileges that
// PUBLIC must not have. It may be run again at any time, even while an agent is running, and then repairs what differs. It
// refuses a server whose PostgreSQL is not supported (a *floors.Refusal), that has known holes (a *floors.Refusal), that has
// languages in which a session cannot be ended (a *floors.Refusal), that lets anyone in without a password (trust), that
// reserves too few connections for the agent, that has prepared transactions, or that has too few for one database of the
// largest plan; then nothing was changed.
func Init(ctx context.Context, o Options) (Report, error) {
	s, err := newSuperuser(o)
	if err != nil {
		return Report{}, err
	}
	db, err := s.open(ctx)
	if err != nil {
		return Report{}, err
	}
	defer db.Close()
	report, err := inspect(ctx, db, o.Versions)
	if err != nil {
		return report, err
	}
	connections, err := inspectConnections(ctx, db, o.LargestPlan)
	if err != nil {
		return report, err
	}
	warnings, err := inspectLocks(ctx, db)
	if err != nil {
		return report, err
	}
	report.Warnings = append(report.Warnings, warnings...)
	warnings, err = inspectLanguages(ctx, db, s, o.Languages)
	report.Warnings = append(report.Warnings, warnings...)
	if err != nil {
		return report, err
	}
	warnings, err = inspectPrograms(ctx, o, report.server)
	report.Warnings = append(report.Warnings, warnings...)
	if err != nil {
		return report, err
	}
	if err := inspectTempFileLimit(ctx, db, o.TempFileLimit); err != nil {
		return report, err
	}
	if err := inspectArchive(ctx, db, o.Archive); err != nil {
		return report, err
	}
	secrets, err := findCredentials(ctx, db, o)
	if err != nil {
		return report, err
	}
	if err := prepareCluster(ctx, db); err != nil {
		return report, err
	}
	if err := prepareMaintenance(ctx, s, secrets, o.Archive); err != nil {
		return report, err
	}
	if report.Restart, err = keepArchive(ctx, db, o.Archive); err != nil {
		return report, err
	}
	sold, err := oversold(ctx, s, connections)
	blind, failed := uncollected(ctx, s)
	apart, unseen := inspectMoves(ctx, db)
	for _, warning := range []string{sold, blind, apart} {
		if warning != "" {
			report.Warnings = append(report.Warnings, warning)
		}
	}
	return report, errors.Join(err, failed, unseen, limitTempFiles(ctx, db, o.TempFileLimit), limitSlots(ctx, db))
}

// findCredentials reads the file, or writes one with new passwords. It refuses where the server's logins have others: those would
// be replaced, which cuts off the agent and PgBouncer, and with them all customers. One wrong password of two is repaired.
func findCredentials(ctx context.Context, db *sql.DB, o Options) (Credentials, error) {
	verifiers, err := verifiersOf(ctx, db)
	if err != nil {
		return Credentials{}, fmt.Errorf("find out whether the server was prepared before: %w", err)
	}
	c, err := ReadCredentials(o.CredentialsFile)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return c, err
	case !missing && o.NewPasswords:
		return c, fmt.Errorf("--new-passwords: %s exists: move it away, or name another file with --credentials-file",
			o.CredentialsFile)
	case missing && (len(verifiers) == 0 || o.NewPasswords):
		return writeNew(o.CredentialsFile, o.CredentialsOwner)
	case missing:
		return c, fmt.Errorf("the server was prepared before, and its logins' passwords are in another file than %s, "+
			"which does not exist: %s", o.CredentialsFile, otherPasswords)
	case c.foreign(verifiers):
		return c, fmt.Errorf("the server was prepared before, and its logins have other passwords than those in %s: %s",
			o.CredentialsFile, otherPasswords)
	}
	return c, nil
}

const otherPasswords = "name the file that the agent uses with --credentials-file, or one that does not exist with " +
	"--new-passwords, which cuts off the running agent and all customers until the agent and PgBouncer have started again"

// verifiersOf are what the server has of its logins' passwords, by login.
func verifiersOf(ctx context.Context, q pg.Querier) (map[string]string, error) {
	verifiers := make(map[string]string)
	err := pg.Each(ctx, q, func(rows *sql.Rows) error {
		var login, verifier string
		err := rows.Scan(&login, &verifier)
		verifiers[login] = verifier
		return err
	}, "SELECT rolname, rolpassword FROM pg_catalog.pg_authid WHERE rolname IN ($1, $2) AND rolpassword IS NOT NULL",
		AgentLogin, PoolerLogin)
	return verifiers, err
}

// foreign reports whether both logins have passwords and neither is that of the file.
func (c Credentials) foreign(verifiers map[string]string) bool {
	agent, pooler := verifiers[AgentLogin], verifiers[PoolerLogin]
	return agent != "" && pooler != "" &&
		!credential.Matches(agent, c.AgentPassword) && !credential.Matches(pooler, c.PoolerPassword)
}

// prepareCluster does what cannot be done in a transaction, and what every database needs.
func prepareCluster(ctx context.Context, db *sql.DB) error {
	for _, s := range []struct{ missing, create string }{
		{"pg_roles WHERE rolname = '" + AgentLogin + "'", "CREATE ROLE " + AgentLogin},
		{
			"pg_database WHERE datname = '" + MaintenanceDatabase + "'",
			"CREATE DATABASE " + MaintenanceDatabase + " TEMPLATE template0",
		},
	} {
		missing, err := pg.One[bool](ctx, db, "SELECT count(*) = 0 FROM pg_catalog."+s.missing)
		if err != nil {
			return err
		}
		if !missing {
			continue
		}
		if _, err := db.ExecContext(ctx, s.create); err != nil {
			return fmt.Errorf("%s: %w", s.create, err)
		}
	}
	if err := muteCustomers(ctx, db); err != nil {
		return err
	}
	return shutOutPublic(ctx, db)
}

// shutOutPublic revokes from PUBLIC what PostgreSQL grants to everybody: to connect to any database, and to fill its disk with
// temporary tables. Grants to individual roles stay.
func shutOutPublic(ctx context.Context, db *sql.DB) error {
	revoke, err := pg.Column(ctx, db, `SELECT pg_catalog.format('REVOKE CONNECT, TEMPORARY ON DATABASE %I FROM PUBLIC', datname)
		FROM pg_catalog.pg_database WHERE datallowconn`)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, strings.Join(revoke, ";"))
	return err
}

// unlogged keeps the statements of a session, which hold verifiers, out of the server's log from its beginning.
var unlogged = map[string]string{
	"log_statement": "none", "log_min_error_statement": "panic", "log_min_duration_statement": "-1",
	"log_min_duration_sample": "-1", "log_transaction_sample_rate": "0",
}

// prepareMaintenance does everything inside the maintenance database, in one transaction.
func prepareMaintenance(ctx context.Context, s superuser, secrets Credentials, archive *Archive) error {
	db, err := s.in(MaintenanceDatabase, unlogged).open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing to do after the commit
	// Two at a time would fail with "tuple concurrently updated".
	if _, err := tx.ExecContext(ctx, "SELECT pg_catalog.pg_advisory_xact_lock(7450017)"); err != nil {
		return fmt.Errorf("maintenance database: %w", err)
	}
	tables, err := missingTables(ctx, tx)
	if err != nil {
		return err
	}
	statements := []string{
		clusterSQL, pooler.SchemaSQL, floors.Schema(AgentLogin), serverSQL, statementsSQL,
		"GRANT CONNECT ON DATABASE " + MaintenanceDatabase + " TO " + AgentLogin,
		"CREATE SCHEMA IF NOT EXISTS ledger AUTHORIZATION " + AgentLogin,
		"SET LOCAL ROLE " + AgentLogin, tables, ledgerFunctionsSQL, "RESET ROLE",
	}
	if archive != nil {
		statements = append(statements, archiveSQL)
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("maintenance database: %w", err)
		}
	}
	verifiers, err := verifiersOf(ctx, tx)
	if err != nil {
		return fmt.Errorf("passwords: %w", err)
	}
	for login, password := range map[string]string{AgentLogin: secrets.AgentPassword, PoolerLogin: secrets.PoolerPassword} {
		if credential.Matches(verifiers[login], password) {
			continue
		}
		if _, err := tx.ExecContext(ctx, "ALTER ROLE "+login+" PASSWORD "+pq.QuoteLiteral(newVerifier(password))); err != nil {
			return fmt.Errorf("password of %s: %w", login, err)
		}
	}
	return tx.Commit()
}
