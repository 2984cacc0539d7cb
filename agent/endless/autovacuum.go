package endless

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
)

// atWork are the workers in customers' databases, and whether no other is free. In none of its own sleeps (VacuumDelay) does a
// worker run a customer's code. ANALYZE does so in all its phases but those that read the table, and a BRIN index is summarized
// also in the task's own name.
const atWork = `SELECT a.pid, a.backend_start, a.query_start, a.query, b.datname, coalesce(v.relid, 0),
		coalesce(` + ledger.SessionAccount + `, b.datname),
		CASE WHEN a.wait_event = 'VacuumDelay' THEN 'working'
			WHEN n.phase NOT LIKE 'acquiring%' OR starts_with(a.query, 'autovacuum: BRIN summarize') THEN 'computing'
			WHEN a.wait_event_type = 'BufferPin' THEN 'waiting'
			WHEN v.phase = 'cleaning up indexes' THEN 'cleaning'
			WHEN a.wait_event_type = 'Lock' THEN 'waiting'
			ELSE 'working' END,
		concat_ws(' ', v.phase, v.heap_blks_scanned, v.heap_blks_vacuumed, v.index_vacuum_count, v.num_dead_tuples),
		(SELECT count(*) FROM pg_stat_get_activity(NULL) b WHERE b.backend_type = 'autovacuum worker')
			>= current_setting('autovacuum_max_workers')::int
	FROM pg_stat_activity a` + ledger.SessionOwner + `
		JOIN pg_roles o ON o.oid = b.datdba AND NOT o.rolsuper
		LEFT JOIN pg_stat_progress_vacuum v ON v.pid = a.pid LEFT JOIN pg_stat_progress_analyze n ON n.pid = a.pid
	WHERE a.backend_type = 'autovacuum worker' AND a.query_start IS NOT NULL`

// computes asks in a customer's database whether cleaning up the indexes of a table computes what the customer has defined.
const computes = `SELECT EXISTS (SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
	WHERE i.indrelid = $1 AND m.amname = 'brin' AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL))`

// endTasks ends the tasks that have stood for too long. PostgreSQL takes up such a table again after a while, and then it is the
// same again; the other tables of the database have been worked on meanwhile.
func (w *Watch) endTasks(ctx context.Context) error {
	var seen []worker
	var allBusy bool
	err := pg.Each(ctx, w.db, func(rows *sql.Rows) error {
		var s worker
		err := rows.Scan(&s.pid, &s.started, &s.begun, &s.task, &s.database, &s.relation, &s.account, &s.doing, &s.progress, &allBusy)
		seen = append(seen, s)
		return err
	}, atWork)
	if err != nil {
		return err
	}
	for _, e := range w.workers.look(seen, allBusy, time.Now()) {
		err = errors.Join(err, w.endTask(ctx, e))
	}
	return err
}

func (w *Watch) endTask(ctx context.Context, e ending) error {
	if e.doing == cleaning {
		if founded, err := w.computes(ctx, e); err != nil || !founded {
			w.workers.acquit(e)
			return err
		}
	}
	ended, err := pg.One[sql.NullBool](ctx, w.db, "SELECT server.end_autovacuum($1, $2, $3)", e.pid, e.begun, e.whole)
	if err != nil || !ended.Bool { // it has ended by itself
		return err
	}
	w.workers.done(e, time.Now())
	w.counted.tasks.Add(1)
	w.seldom.Warn(w.log, e.database+e.task, "a task of autovacuum was ended that kept a worker from all other databases",
		zap.String("database", e.database), zap.String("task", e.task), zap.String("was", string(e.doing)),
		zap.Duration("stood", e.stood), zap.Bool("worker", e.whole))
	return nil
}

func (w *Watch) computes(ctx context.Context, e ending) (bool, error) {
	db, err := w.open(e.database)
	if err != nil {
		return false, err
	}
	defer db.Close()
	return pg.One[bool](ctx, db, computes, e.relation)
}
