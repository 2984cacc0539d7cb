package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/pgherd/pgherd/agent/pg"
)

// ErrUnprepared is wrapped by errors of a server that agent init has not prepared, or not with these passwords.
var ErrUnprepared = errors.New("run pgherd agent init")

// Explained adds ErrUnprepared to an error of the agent's log-in that comes from that. PostgreSQL does not say of a login with a
// password whether it exists.
func Explained(err error) error {
	var what string
	switch refused := pq.As(err); {
	case refused == nil || errors.Is(err, ErrUnprepared):
		return err
	case refused.Code == pqerror.InvalidPassword,
		refused.Code == pqerror.InvalidAuthorizationSpecification && strings.Contains(refused.Message, "does not exist"):
		what = "PostgreSQL has no login " + AgentLogin + " with the password of the credentials file"
	case refused.Code == pqerror.InvalidCatalogName && strings.Contains(refused.Message, MaintenanceDatabase):
		what = "PostgreSQL has no database " + MaintenanceDatabase
	case refused.Code == pqerror.InvalidSchemaName:
		what = "the maintenance database is empty"
	default:
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrUnprepared, what, err)
}

// lacking is what keeps customers from holding what all share, and is missing.
const lacking = `SELECT what
	FROM (SELECT ARRAY(SELECT unnest(setconfig) FROM pg_db_role_setting WHERE setdatabase = 0 AND setrole = 0)) forall (have),
		LATERAL (VALUES
			('the function server.end_autovacuum',
				to_regprocedure('server.end_autovacuum(integer, timestamptz, boolean)') IS NOT NULL),
			('the function server.exported_snapshots', to_regprocedure('server.exported_snapshots()') IS NOT NULL),
			('the function server.database_files', to_regprocedure('server.database_files(oid)') IS NOT NULL),
			('the function server.statement_texts', to_regprocedure('server.statement_texts()') IS NOT NULL),
			('SET on pg_stat_statements.track for the agent', has_parameter_privilege('pg_stat_statements.track', 'SET')),
			('REPLICATION for the agent', (SELECT rolreplication FROM pg_roles WHERE rolname = current_user)),
			('pg_create_subscription for the agent', pg_has_role('pg_create_subscription', 'USAGE')),
			('log_min_messages = panic for all', 'log_min_messages=panic' = ANY (have)),
			('log_min_error_statement = panic for all', 'log_min_error_statement=panic' = ANY (have))) checked (what, there)
	WHERE NOT there`

// CheckPrepared returns an error that wraps ErrUnprepared where a server lacks some of what init gives it, since an administrator
// has taken it away, or another version has prepared it. It asks in the maintenance database.
func CheckPrepared(ctx context.Context, maintenance pg.Querier) error {
	missing, err := pg.Column(ctx, maintenance, lacking)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("%w: the server lacks %s", ErrUnprepared, strings.Join(missing, ", "))
	}
	return err
}
