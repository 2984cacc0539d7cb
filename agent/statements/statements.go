// Package statements reads what PostgreSQL has counted of the statements of customers' databases, and bounds what that costs.
//
// A server has one collection for all databases, of some thousand statements (pg_stat_statements). Whoever runs many that differ
// pushes out those that were executed seldom, whosever they are. Their texts stand whole in one file, which nothing bounds: one
// customer can make it grow by a hundred megabytes a second, and every session that reads it, or tidies it up while others wait,
// has all of it in memory. So where it is too large the agent has the whole collection begin anew.
package statements

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/slowquery"
)

const (
	// mostTexts is how many bytes the file of the texts may have: some 13 KB for each of 5,000 statements. Then a look takes a third
	// of a second; with texts of 2 KB it takes 40 ms.
	mostTexts = 64 << 20
	// watchPause is between two looks at its size.
	watchPause = time.Second
	// lookTime bounds a look at it.
	lookTime = 10 * time.Second
	// askTime bounds how long who asks waits for an answer, and for those who have asked before.
	askTime = 10 * time.Second
	// rest is how many times as long as the last reading took the next one waits: then all together take a quarter of one
	// processor's time at most. While one is read, nobody's new statement is entered.
	rest = 3
	// mostRows is how many statements of a database are read, the first in their order. Those that are not shown count.
	mostRows = 1000
)

// Statements reads those of a server.
type Statements struct {
	ledger *ledger.Ledger
	log    *zap.Logger
	seldom loop.Seldom
	turn   chan struct{}
}

// New makes a reader of a server's statements.
func New(l *ledger.Ledger, log *zap.Logger) *Statements {
	return &Statements{ledger: l, log: log, turn: make(chan struct{}, 1)}
}

// Run keeps the file of the texts small until ctx ends.
func (s *Statements) Run(ctx context.Context) {
	loop.Run(ctx, s.log, nil, "nobody looks how large the statements' texts are", func(ctx context.Context) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		return watchPause, s.trim(ctx)
	})
}

// trim has a collection begin anew whose texts are too large. A file that the server has left from when it had one stays.
func (s *Statements) trim(ctx context.Context) error {
	bytes, err := pg.One[int64](ctx, s.ledger.DB(), "SELECT server.statement_texts()")
	if err != nil || bytes <= mostTexts {
		return err
	}
	collects, err := s.ledger.CollectsStatements(ctx)
	if err != nil || !collects {
		return err
	}
	return s.forget(ctx, "their texts take too much room", zap.Int64("bytes", bytes))
}

func (s *Statements) forget(ctx context.Context, why string, fields ...zap.Field) error {
	_, err := s.ledger.DB().ExecContext(ctx, "SELECT server.pg_stat_statements_reset()")
	if err == nil {
		s.seldom.Warn(s.log, why, "the statements of all databases are counted anew", append(fields, zap.String("why", why))...)
	}
	return err
}

// SlowQueries answers with the statements of a database's own logins that may be shown.
func (s *Statements) SlowQueries(ctx context.Context, q command.SlowQueries) (list command.SlowQueryList, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if _, err := s.ledger.InService(ctx, string(q.DatabaseID)); err != nil {
		return list, err
	}
	err = s.inTurn(ctx, func() error {
		list, err = s.read(ctx, q)
		return err
	})
	return list, err
}

// inTurn does something when it is its turn. The next one comes after a rest.
func (s *Statements) inTurn(ctx context.Context, do func() error) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	began := time.Now()
	defer func() { time.AfterFunc(rest*time.Since(began), func() { <-s.turn }) }()
	return do()
}

// by are the columns of the orders.
var by = map[slowquery.Order]string{
	slowquery.ByTotal: "s.total_exec_time", slowquery.ByMean: "s.mean_exec_time", slowquery.ByCalls: "s.calls",
}

// The agent may read no view that it does not know to be PostgreSQL's own, but functions. A statement that ran in another one is
// in the time of that.
const (
	stateQuery = "SELECT server.statement_texts(), dealloc > 0, stats_reset FROM server.pg_stat_statements_info()"
	listQuery  = `SELECT s.queryid::text, r.name, left(s.query, $2), s.calls, s.rows, s.total_exec_time, s.mean_exec_time,
			s.max_exec_time
		FROM server.pg_stat_statements(true) s JOIN ledger.database d ON d.id = $1 AND d.oid = s.dbid
		JOIN ledger.role r ON r.database_id = d.id AND r.oid = s.userid
		WHERE s.toplevel AND s.query IS NOT NULL AND s.calls > 0 ORDER BY `
)

func (s *Statements) read(ctx context.Context, q command.SlowQueries) (list command.SlowQueryList, err error) {
	if list.Collected, err = s.ledger.CollectsStatements(ctx); err != nil || !list.Collected {
		return list, err
	}
	var bytes int64
	if err := s.ledger.DB().QueryRowContext(ctx, stateQuery).Scan(&bytes, &list.Evicted, &list.Since); err != nil {
		return list, err
	}
	if bytes > mostTexts {
		return list, ledger.Unavailable("the statements of all databases are about to be counted anew; ask again", nil)
	}
	var all []slowquery.Statement
	err = pg.Each(ctx, s.ledger.DB(), func(rows *sql.Rows) error {
		var one slowquery.Statement
		err := rows.Scan(&one.ID, &one.Username, &one.Text, &one.Calls, &one.Rows, &one.TotalMs, &one.MeanMs, &one.MaxMs)
		all = append(all, one)
		return err
	}, listQuery+by[q.Order]+" DESC LIMIT $3", string(q.DatabaseID), slowquery.MostRead+1, mostRows)
	// A text of a database without an encoding may have none that another one can show. Then none can be read, of no database.
	if slices.Contains([]string{"22021", "22P05"}, pg.State(err)) {
		if failed := s.forget(ctx, "a text has characters that cannot be read"); failed != nil {
			return list, failed
		}
		return list, ledger.Unavailable("the statements of all databases are counted anew; ask again", err)
	}
	list.Since, list.Statements = list.Since.UTC(), slowquery.Top(all, q.Order)
	return list, err
}
