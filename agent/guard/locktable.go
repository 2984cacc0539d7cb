package guard

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/lib/pq"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/lockroom"
	"github.com/pgherd/pgherd/agent/pg"
)

// A customer can lock very many things: an advisory lock is a lock on a number, and session locks stay after the statement has
// failed that took them. Nobody is ended for what each session has of the table of locks. Beyond that, customers' sessions have
// lockroom.Table.ForCustomers entries together; while they hold more, sessions of the account that holds most are ended.

// holder is a customer's session that has entries in the table of locks.
type holder struct {
	pid     int64
	account string // whose login it is
	locks   int
	// ending says that it was told to end a short time ago, and is cleaning up. Nobody else is ended for what it holds.
	ending bool
}

// excess chooses the sessions to end, so that those left hold no more than most together: of the account that holds most the
// session that holds most, again and again. None is ended that holds no more than each. A sample does not say how many are
// enough, and the table may be filling fast: all of that account's are ended that hold more than each.
func excess(all []holder, sample bool, most, each int) (end []int64) {
	total, by := 0, map[string]int{}
	for _, h := range all {
		by[h.account] += h.locks
		if !h.ending {
			total += h.locks
		}
	}
	left := slices.DeleteFunc(slices.Clone(all), func(h holder) bool { return h.ending || h.locks <= each })
	for total > most && len(left) > 0 {
		worst := slices.MaxFunc(left, func(a, b holder) int {
			return cmp.Or(cmp.Compare(by[a.account], by[b.account]), cmp.Compare(a.locks, b.locks), cmp.Compare(a.pid, b.pid))
		})
		left = slices.DeleteFunc(left, func(h holder) bool {
			chosen := h.pid == worst.pid || sample && h.account == worst.account
			if chosen {
				end = append(end, h.pid)
				total, by[h.account] = total-h.locks, by[h.account]-h.locks
			}
			return chosen
		})
	}
	return end
}

// lockKind is one of PostgreSQL's two tables of locks.
type lockKind struct {
	name       string // as the log and the metrics have it
	most, each int
}

func kindsOf(t lockroom.Table) [2]lockKind {
	return [2]lockKind{
		{"locks", t.ForCustomers(), t.Each}, {"predicate locks", t.PredicatesForCustomers(), t.EachPredicate},
	}
}

// counted counts entries by session. It reads so many of them at most: with more, which come in no order, it is a sample. What
// takes no entry, which is most locks of small transactions, is not counted. The function is in the list of columns, where its
// rows are not stored before the first is counted.
const counted = `SELECT coalesce((l).pid, 0), count(*) FILTER (WHERE NOT (l).fastpath AND (l).mode <> 'SIReadLock'),
		count(*) FILTER (WHERE (l).mode = 'SIReadLock'), count(*)
	FROM (SELECT pg_lock_status() AS l LIMIT $1) s GROUP BY 1`

// holding tells of sessions that are neither the agent's nor a superuser's.
const holding = `SELECT a.pid, r.rolname, coalesce(a.datid, 0), a.backend_start
	FROM pg_stat_get_activity(NULL) a JOIN pg_roles r ON r.oid = a.usesysid
	WHERE a.pid = ANY ($1) AND a.backend_type = 'client backend' AND r.rolname <> current_user AND NOT r.rolsuper`

// accounts are whose the sessions are.
const accounts = `SELECT a.pid, ` + ledger.SessionAccount + ` FROM pg_stat_get_activity(NULL) a` + ledger.SessionOwner + `
	WHERE a.pid = ANY ($1) AND d.id IS NOT NULL`

// terminateSessions ends sessions, if they are still the same: a process ID comes again.
const terminateSessions = `SELECT pg_terminate_backend(a.pid) FROM unnest($1::int[], $2::timestamptz[]) s (pid, start)
	JOIN pg_stat_get_activity(NULL) a ON a.pid = s.pid AND a.backend_start = s.start`

func terminate(ctx context.Context, tx *sql.Tx, all ...session) error {
	pids, starts := make(pq.Int64Array, len(all)), make(pq.StringArray, len(all))
	for i, s := range all {
		pids[i], starts[i] = s.pid, s.start.Format(time.RFC3339Nano)
	}
	_, err := tx.ExecContext(ctx, terminateSessions, pids, starts)
	return err
}

// graceTime is how long a session that was told to end may take until what it holds counts again. One that holds very much takes
// a part of a second.
const graceTime = 5 * time.Second

// session is one of PostgreSQL's.
type session struct {
	pid   int64
	start time.Time
}

// seen is what a look has found of a session.
type seen struct {
	session
	login    string
	account  string
	database uint32
	locks    [2]int // by kind
}

// jobSlack is how much more than it has claimed a job may hold.
const jobSlack = 1000

// boundLocks ends the sessions that hold too much. It returns how much of their part of the table customers use.
func (g *Guard) boundLocks(ctx context.Context, tx *sql.Tx) (use float64, err error) {
	kinds := kindsOf(g.table)
	claims, claimed := g.room.Taken()
	const sessionsOfDump = 3
	limit := kinds[0].most + kinds[1].most + sessionsOfDump*claimed + jobSlack
	found, sums, read, err := g.count(ctx, tx, limit)
	if err != nil {
		return 0, err
	}
	g.used.Store(&Use{sums[0], g.table.Objects, sums[1], g.table.Predicates})
	if sums[0] <= kinds[0].most && sums[1] <= kinds[1].most {
		return max(share(sums[0], kinds[0].most), share(sums[1], kinds[1].most)), nil
	}
	customers, err := g.know(ctx, tx, found)
	for i, k := range kinds {
		if err != nil {
			return 0, err
		}
		held := 0
		for _, s := range customers {
			if i == 0 && claims[s.login] > 0 {
				s.locks[i] = max(0, s.locks[i]-claims[s.login]-jobSlack)
			}
			held += s.locks[i]
		}
		use = max(use, share(held, k.most))
		err = g.end(ctx, tx, k, customers, i, read == limit)
	}
	return use, err
}

// count counts the entries of each session. It reads at most so many.
func (g *Guard) count(ctx context.Context, tx *sql.Tx, most int) (found map[int64]*seen, sums [2]int, read int, err error) {
	found = map[int64]*seen{}
	err = pg.Each(ctx, tx, func(rows *sql.Rows) error {
		var s seen
		var all int
		err := rows.Scan(&s.pid, &s.locks[0], &s.locks[1], &all)
		found[s.pid] = &s
		sums[0], sums[1], read = sums[0]+s.locks[0], sums[1]+s.locks[1], read+all
		return err
	}, counted, most)
	return found, sums, read, err
}

func share(n, of int) float64 { return float64(n) / float64(max(1, of)) }

// know finds out whose the sessions are. It leaves out those that are no customer's.
func (g *Guard) know(ctx context.Context, tx *sql.Tx, found map[int64]*seen) (list []*seen, err error) {
	pids := pq.Int64Array(slices.Collect(maps.Keys(found)))
	err = pg.Each(ctx, tx, func(rows *sql.Rows) error {
		var pid int64
		var s seen
		if err := rows.Scan(&pid, &s.login, &s.database, &s.start); err != nil {
			return err
		}
		known := found[pid]
		known.login, known.database, known.start, known.account = s.login, s.database, s.start, s.login
		list = append(list, known)
		return nil
	}, holding, pids)
	if err != nil {
		return nil, err
	}
	// The ledger's tables need locks themselves. Where there is none left, each login stands for itself.
	if _, err := tx.ExecContext(ctx, "SAVEPOINT accounts"); err != nil {
		return nil, err
	}
	unknown := pg.Each(ctx, tx, func(rows *sql.Rows) error {
		var pid int64
		var account string
		err := rows.Scan(&pid, &account)
		found[pid].account = account
		return err
	}, accounts, pids)
	if unknown != nil {
		_, err = tx.ExecContext(ctx, "ROLLBACK TO accounts")
	}
	return list, err
}

// end ends the sessions that hold too much of one kind.
func (g *Guard) end(ctx context.Context, tx *sql.Tx, k lockKind, customers []*seen, kind int, sample bool) error {
	var holders []holder
	for _, s := range customers {
		holders = append(holders, holder{s.pid, s.account, s.locks[kind], time.Since(g.told[s.session]) < graceTime})
	}
	pids := excess(holders, sample, k.most, k.each)
	if len(pids) == 0 {
		return nil
	}
	customers = slices.DeleteFunc(slices.Clone(customers), func(s *seen) bool { return !slices.Contains(pids, s.pid) })
	all := make([]session, len(customers))
	for i, s := range customers {
		all[i] = s.session
	}
	err := terminate(ctx, tx, all...)
	for _, s := range customers {
		if _, again := g.told[s.session]; !again {
			g.ended[kind].Add(1)
			g.rests.Ended(s.login)
		}
		g.told[s.session] = time.Now()
		g.seldom.Warn(g.log, k.name+s.login, "a session was ended that held too many locks, of which all customers share one table",
			zap.String("login", s.login), zap.String("account", s.account), zap.Uint32("databaseOID", s.database),
			zap.String("kind", k.name), zap.Int("held", s.locks[kind]), zap.Int("customersMayHold", k.most), zap.Error(err))
	}
	return err
}

// forget drops what was told to sessions that must have ended long ago.
func (g *Guard) forget() {
	for s, told := range g.told {
		if time.Since(told) > time.Hour {
			delete(g.told, s)
		}
	}
}
