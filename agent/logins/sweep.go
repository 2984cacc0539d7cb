package logins

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/loop"
)

const (
	// ofBefore is a session of a login p that began before the login's last change. An administrator's is left alone.
	ofBefore = `a.usesysid = p.oid AND a.backend_type = 'client backend' AND a.backend_start < p.changed_at
		AND NOT EXISTS (SELECT FROM pg_roles r WHERE r.oid = p.oid AND r.rolsuper)`

	// sweepQuery ends those of the logins that are watched, and returns how many they were, how many logins are watched, and how
	// many of these by watchParked. All others that were changed are watched for as long as a log-in may take (one that stands
	// still is ended after authentication_timeout): their change may not have come that far.
	sweepQuery = `SELECT count(s.ended), count(*), count(p.parked) FROM ledger.role p LEFT JOIN LATERAL (
			SELECT pg_terminate_backend(a.pid) AS ended FROM pg_stat_activity a WHERE ` + ofBefore + `
		) s ON true WHERE p.parked IS NOT NULL
			OR p.changed_at > clock_timestamp() - current_setting('authentication_timeout')::interval - interval '10 s'`

	// goneQuery ends the sessions of roles that are removed, which a role may have stretched the beginning of (post_auth_delay).
	// The second is for roles that were made since the query began.
	goneQuery = `SELECT count(pg_terminate_backend(a.pid)) FROM pg_stat_activity a
		WHERE a.backend_type = 'client backend' AND a.backend_start < statement_timestamp() - interval '1 s'
		  AND a.datid IN (SELECT d.oid FROM ledger.database d) AND a.usesysid IS NOT NULL
		  AND (NOT EXISTS (SELECT FROM pg_roles r WHERE r.oid = a.usesysid)
			OR a.usesysid IN (SELECT dead.oid FROM ledger.dead_role dead))`
)

const (
	sweepPause     = 100 * time.Millisecond // while there is something to watch
	sweepIdlePause = 5 * time.Second
	sweepTime      = 30 * time.Second // bounds one round
)

// SweepChanged ends sessions that began before the last change of their login, until ctx ends, and takes back passwords that such
// a session has set. It goes by the ledger, so it takes up what a predecessor left.
func (x *Logins) SweepChanged(ctx context.Context) {
	loop.Run(ctx, x.log, x.changed, "sessions of old passwords are not swept", func(ctx context.Context) (time.Duration, error) {
		watched, err := x.sweep(ctx)
		if watched > 0 || err != nil {
			return sweepPause, err
		}
		return sweepIdlePause, nil
	})
}

// sweep is one round. It returns how many logins there are to watch.
func (x *Logins) sweep(ctx context.Context) (watched int, err error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	var gone, ended, parked int
	err = errors.Join(x.db.QueryRowContext(ctx, goneQuery).Scan(&gone),
		x.db.QueryRowContext(ctx, sweepQuery).Scan(&ended, &watched, &parked))
	if gone+ended > 0 {
		x.log.Info("sessions of an old password were ended", zap.Int("sessions", gone+ended))
	}
	if err == nil && parked > 0 {
		err = x.releaseParked(ctx)
	}
	return watched, err
}

// wakeSweep says that a login was changed.
func (x *Logins) wakeSweep() { loop.Wake(x.changed) }
