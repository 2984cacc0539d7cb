package commons

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
)

// terminate ends a session, if it is still the same.
const terminate = `SELECT coalesce(bool_or(pg_terminate_backend(a.pid)), false) FROM pg_stat_get_activity($1) a
	WHERE a.backend_start = $2`

// end ends sessions.
func (c *Commons) end(ctx context.Context, list []verdict) (err error) {
	for _, v := range list {
		ended, failed := pg.One[bool](ctx, c.db, terminate, v.pid, v.began)
		err = errors.Join(err, failed)
		if !ended {
			continue
		}
		c.ended[v.resource].Add(1)
		f := c.latest.Load()
		if v.takes && v.class == customer {
			c.rests.Ended(v.login)
		}
		c.seldom.Warn(c.log, string(v.resource)+v.account+v.database+v.why,
			"a session was ended that takes too much of what all databases share",
			zap.String("resource", string(v.resource)), zap.String("why", v.why), zap.String("login", v.login),
			zap.String("database", v.database), zap.String("account", v.account), zap.Duration("open", v.open.Round(time.Second)),
			zap.Int64("keptIDs", v.held), zap.Float64("queue", f.Queue), zap.Int64("catalogBytes", f.CatalogBytes))
	}
	return err
}

const (
	// trimPause is between two looks at stored settings, and storedSettings how many bytes a login may have stored for itself in a
	// database that is not its own.
	trimPause      = 5 * time.Second
	storedSettings = 16 << 10
)

// stored are the settings that are too large. Their size is that of the stored form: nothing of them is read.
const stored = `SELECT format('ALTER ROLE %I IN DATABASE %I RESET ALL', r.rolname, b.datname) FROM pg_db_role_setting s
	JOIN ledger.role l ON l.oid = s.setrole JOIN pg_roles r ON r.oid = s.setrole JOIN pg_database b ON b.oid = s.setdatabase
	LEFT JOIN ledger.database d ON d.oid = s.setdatabase
	WHERE d.id IS DISTINCT FROM l.database_id AND pg_column_size(s.setconfig) > $1`

// trim takes back what logins have stored for themselves in databases of others: every login can, in each of them, without limit.
// What is small stays, for a login that was admitted there. What a login stores in its own database, or for all, is two rows.
func (c *Commons) trim(ctx context.Context, now time.Time) error {
	if now.Sub(c.trimmed) < trimPause {
		return nil
	}
	c.trimmed = now
	if _, err := c.db.ExecContext(ctx, "DELETE FROM pooler.resting WHERE until < now()"); err != nil {
		return err
	}
	statements, err := pg.Column(ctx, c.db, stored, storedSettings)
	for _, statement := range statements {
		// Somebody may store there at this moment; then it is done next time.
		if failed := pg.Atomically(ctx, c.db, ledger.Soon, statement); failed != nil && !pg.InTheWay(failed) {
			err = errors.Join(err, fmt.Errorf("%s: %w", statement, failed))
		}
	}
	if len(statements) > 0 {
		c.seldom.Warn(c.log, "stored settings", "large settings of logins were taken back, which they had stored in others' databases",
			zap.Int("count", len(statements)), zap.Strings("first", statements[:min(5, len(statements))]))
	}
	return err
}
