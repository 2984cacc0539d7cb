package follow_test

import (
	"database/sql"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
)

// makesEntries makes the table that writers write into.
const makesEntries = `CREATE TABLE entry (writer int, n int, PRIMARY KEY (writer, n))`

const (
	manyWriters = 8
	// writersRest is between two rows of a writer: a target whose one process repeats what all of them do has to come after them,
	// also where the tests have more processes than processors.
	writersRest = 2 * time.Millisecond
)

// writers insert a row after the other, each with a number that is used once, whether or not it is confirmed.
type writers struct {
	move              *move
	at                atomic.Pointer[agenttest.Stack] // where they find the database
	confirmed, unsure [manyWriters]int
	done              chan struct{}
	group             sync.WaitGroup
}

// writes has writers write where the database is now.
func (m *move) writes(t *testing.T) *writers {
	t.Helper()
	w := &writers{move: m, done: make(chan struct{})}
	w.at.Store(m.source)
	for i := range manyWriters {
		w.group.Add(1)
		go func() {
			defer w.group.Done()
			w.write(t, i)
		}()
	}
	return w
}

func (w *writers) write(t *testing.T, as int) {
	name, password := w.move.w.Login(database.OwnerLogin)
	var db *sql.DB
	for n := 1; ; n++ {
		select {
		case <-w.done:
			if db != nil {
				_ = db.Close()
			}
			return
		default:
		}
		if db == nil {
			db = check.Must(sql.Open("postgres", w.at.Load().PooledURL(w.move.w.Name, name, password)))(t)
			db.SetMaxOpenConns(1)
		}
		if _, err := db.Exec(`INSERT INTO entry VALUES ($1, $2)`, as, n); err != nil {
			w.unsure[as]++
			_ = db.Close()
			db = nil
			time.Sleep(10 * time.Millisecond)
			continue
		}
		w.confirmed[as]++
		time.Sleep(writersRest)
	}
}

// passes keeps customers out at the source, has the target take the rest, and lets them in there.
func (m *move) passes(t *testing.T) {
	t.Helper()
	began := time.Now()
	m.parted = tell(t, m, m.source, m.parting())
	parted := time.Now()
	tell(t, m, m.target, m.taking())
	taken := time.Now()
	tell(t, m, m.target, m.serving())
	t.Logf("part %s, take %s, serve %s", parted.Sub(began), taken.Sub(parted), time.Since(taken))
}

// end ends the writers. The target has what the source had, where that still has it, and all that was confirmed.
func (w *writers) end(t *testing.T, source, target *agenttest.Stack) {
	t.Helper()
	close(w.done)
	w.group.Wait()
	const all = `SELECT coalesce(md5(string_agg(e::text, ' ' ORDER BY writer, n)), '') || count(*) FROM entry e`
	if source != nil {
		if had, has := source.InDatabase(t, w.move.w, all), target.InDatabase(t, w.move.w, all); had != has {
			t.Errorf("the source has %s, and the target %s", had, has)
		}
	}
	for i := range manyWriters {
		n := check.Must(strconv.Atoi(target.InDatabase(t, w.move.w,
			fmt.Sprintf(`SELECT count(*) FROM entry WHERE writer = %d`, i))))(t)
		if least := w.confirmed[i]; n < least || n > least+w.unsure[i] || n == 0 {
			t.Errorf("writer %d has %d rows, of which %d were confirmed and %d not", i, n, least, w.unsure[i])
		}
	}
}
