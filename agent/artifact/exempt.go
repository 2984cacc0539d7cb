package artifact

import (
	"context"
	"database/sql"

	"github.com/pgherd/pgherd/agent/artifact/dumpsql"
)

// mayExempt is true where agent init has let the agent set the parameter. An earlier version's has not.
const mayExempt = `has_parameter_privilege(current_user, 'temp_file_limit', 'SET')`

// exempt lifts the limit on temporary files for the login of a copy, in which indexes are built. The reservation of the copy
// bounds them instead. The login itself cannot set the parameter, nor can any customer's.
func exempt(login string) string {
	return `DO $do$ BEGIN IF ` + mayExempt + ` THEN
		ALTER ROLE ` + dumpsql.QuoteIdentifier(login) + ` SET temp_file_limit = -1; END IF; END $do$`
}

// CopiesAreExempt reports whether the server's limit on temporary files does not hold for copies.
func (b *Backuper) CopiesAreExempt(ctx context.Context) (exempt bool, err error) {
	err = b.cfg.with(b.cfg.Maintenance, "", func(db *sql.DB) error {
		return db.QueryRowContext(ctx, `SELECT `+mayExempt).Scan(&exempt)
	})
	return exempt, err
}
