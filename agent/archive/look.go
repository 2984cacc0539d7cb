package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/recovery"
)

// Look is Recover for a server that nobody changes: it stands still at its moment, and takes no writes. It can be moved to a
// later one. Beside the agent, only the database's owner gets in, and only into the database: what the owner asks it may be
// hostile.
func (a *Archive) Look(ctx context.Context, m Moment, tell jobs.Tell) (*Side, error) {
	hot := map[string]int64{}
	err := a.Server.Admin(m.OperationID, func(db *sql.DB) error {
		const query = "SELECT name, setting::bigint FROM pg_settings WHERE name = ANY ($1)"
		rows, err := db.QueryContext(ctx, query, pq.Array(standbySettings))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			var value int64
			if err := rows.Scan(&name, &value); err != nil {
				return err
			}
			hot[name] = value
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return a.beside(ctx, &Side{moment: m, hot: hot}, tell)
}

// standbySettings are those that must not be lower than they were on the server that is replayed.
var standbySettings = []string{
	"max_connections", "max_worker_processes", "max_wal_senders", "max_prepared_transactions", "max_locks_per_transaction",
}

const (
	// lookMemory bounds the memory of each session of a server that is looked at, beside what all share.
	lookMemory = 512 << 20
	// lookFiles bounds the files in which a session sorts.
	lookFiles = "1GB"
)

// whileLookedAt are the arguments of a server that is looked at: of those that are given twice, the last counts.
func (s *Side) whileLookedAt() (args []string) {
	if s.hot == nil {
		return nil
	}
	args = []string{"-c", "hot_standby=on", "-c", "temp_file_limit=" + lookFiles, "-c", "default_transaction_read_only=on"}
	for _, name := range slices.Sorted(maps.Keys(s.hot)) {
		args = append(args, "-c", name+"="+strconv.FormatInt(s.hot[name], 10))
	}
	return args
}

// onlyOwners lets the agent into each database, and a database's owner, who has its name, into that one. Nobody has a password
// there; dblink and postgres_fdw let nobody in without one who is no superuser.
func (s *Side) onlyOwners() string {
	return "local all " + hbaName(s.archive.Server.User) + " trust\nlocal sameuser all trust\n"
}

// hbaName writes a name so that it means nothing else.
func hbaName(name string) string { return `"` + name + `"` }

// lowerError says that a setting is lower than it was on the server that is replayed.
type lowerError struct {
	name string
	was  int64
}

func (e *lowerError) Error() string {
	return fmt.Sprintf("%s is lower than it was, %d, on the server that is replayed", e.name, e.was)
}

var lowerPattern = regexp.MustCompile(
	`^DETAIL:\s+(\w+) = \d+ is a lower setting than on the primary server, where its value was (\d+)\.`)

// hearLower notes a setting that is too low. Where the server only stands still for it, it is stuck.
func (h *heard) hearLower(line string) {
	found := lowerPattern.FindStringSubmatch(line)
	if found == nil || h.lower != nil {
		return
	}
	was, _ := strconv.ParseInt(found[2], 10, 64) // it is digits; a number that large is none that PostgreSQL writes
	h.lower = &lowerError{found[1], was}
	close(h.stuck)
}

// raised raises the setting that an error says is too low. The server is then started anew.
func (s *Side) raised(err error) bool {
	var lower *lowerError
	if !errors.As(err, &lower) || s.hot == nil || s.hot[lower.name] >= lower.was {
		return false
	}
	s.hot[lower.name] = lower.was
	return true
}

// unlockTime bounds the question who has locks: one on a catalog may keep everybody waiting.
const unlockTime = 15 * time.Second

// unlocked has a server that stands still become one of its own where a transaction that was open at the moment has locked a
// table against everybody: while it stands still, that would not end. It cannot be moved then.
func (s *Side) unlocked(ctx context.Context) error {
	if !s.still {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, unlockTime)
	defer cancel()
	locked := true // where nobody can say
	_ = s.connect().Admin(s.moment.OperationID, func(db *sql.DB) (err error) {
		const query = `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'relation' AND mode = 'AccessExclusiveLock')`
		locked, err = pg.One[bool](asking, db, query)
		locked = locked || err != nil
		return err
	})
	if !locked {
		return ctx.Err()
	}
	s.archive.log(s.moment).Info("a transaction of the moment has locks: the server beside does not stand still")
	if err := s.write("promote", ""); err != nil {
		return err
	}
	if err := s.running.Process.Signal(syscall.SIGUSR1); err != nil {
		return err
	}
	select {
	case <-s.open:
		s.still = false
		return nil
	case <-s.ended:
		return errors.New("the server beside has ended on its way out of its recovery")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// At is the moment that the server is at.
func (s *Side) At() time.Time { return s.moment.At }

// moveEnd bounds how long a server may take to write down where it stands.
const moveEnd = time.Minute

// Move has a server that is looked at go on to a later moment, and reports whether it has. Where it has not, it is as it was: it
// is to be closed, and the moment to be had back anew, which is sooner or the only way: a copy of the server was made in between,
// or the database was replaced, or something is missing there. After an error it can only be closed. The errors are those of
// Recover.
func (s *Side) Move(ctx context.Context, to time.Time, tell jobs.Tell) (moved bool, err error) {
	a := s.archive
	if !s.still || !to.After(s.moment.At) {
		return false, nil
	}
	if to.After(a.Now().Add(blurred)) {
		return false, fault.New(fault.PointNotRecoverable, "by the clock of the database's server, that moment is still to come")
	}
	if err := a.reach(ctx, to); err != nil {
		return false, err
	}
	a.using.RLock()
	defer a.using.RUnlock()
	m := s.moment
	m.At = to
	from, oids, err := a.plan(ctx, m)
	if err != nil {
		return false, err
	}
	between := from.Backup != s.span.Backup && from.From.After(s.moment.At)
	if between || slices.ContainsFunc(oids, func(oid uint32) bool { return !slices.Contains(s.oids, oid) }) {
		return false, nil
	}
	tell(recovery.Replaying, 0, command.Bytes{})
	if err := s.end(syscall.SIGINT, moveEnd); err != nil {
		return false, err
	}
	a.Crash("look.stopped")
	s.moment = m
	if err := s.configure(true); err != nil {
		return false, err
	}
	return true, s.reach(ctx, tell)
}
