package executor

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// A log-in that stands still in the middle ends after authentication_timeout. For that long after the change of a login, a
// session of before may still appear.
const (
	inWindow = `p.changed_at > clock_timestamp() - current_setting('authentication_timeout')::interval - interval '10 s'`

	// sweepQuery terminates them, and returns how many logins there are to watch.
	sweepQuery = `SELECT count(*), count(s.ended) FROM ledger.role p LEFT JOIN LATERAL (
			SELECT pg_terminate_backend(a.pid) AS ended FROM pg_stat_activity a
			WHERE a.usesysid = p.oid AND a.backend_type = 'client backend' AND a.backend_start < p.changed_at
		) s ON true WHERE ` + inWindow
)

const (
	sweepPause     = 100 * time.Millisecond // while there is something to watch
	sweepIdlePause = 5 * time.Second
)

// SweepChanged ends sessions that began before the last change of their login, until ctx ends. It goes by the ledger, so it
// takes up what a predecessor left.
func (x *Executor) SweepChanged(ctx context.Context) {
	for ctx.Err() == nil {
		var watched, ended int
		err := x.db.QueryRowContext(ctx, sweepQuery).Scan(&watched, &ended)
		if ended > 0 {
			x.log.Info("sessions of an old password were ended", zap.Int("sessions", ended))
		}
		pause := sweepIdlePause
		if watched > 0 || err != nil {
			pause = sweepPause
		}
		select {
		case <-ctx.Done():
		case <-x.changed:
		case <-time.After(pause):
		}
	}
}

// wakeSweep says that a login was changed.
func (x *Executor) wakeSweep() {
	select {
	case x.changed <- struct{}{}:
	default: // it is awake
	}
}
