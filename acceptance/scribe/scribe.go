// Package scribe writes numbered rows into a database, wherever it is, and knows which of them were confirmed. Afterwards it
// tells whether one of these is lost, or there twice, and for how long none could be written.
package scribe

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	_ "github.com/lib/pq" // the driver "postgres"

	"github.com/pgherd/pgherd/acceptance/check"
)

// Table is what scribes write into, and Insert how: $1 is the scribe's name, and $2 the number.
const (
	Table  = "CREATE TABLE entry (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, who text NOT NULL, n int NOT NULL)"
	Insert = "INSERT INTO entry (who, n) VALUES ($1, $2)"
)

// Config says what a scribe does.
type Config struct {
	// Name tells it from others that write into the same table.
	Name string
	// Where says how to connect: at first, and after each failure.
	Where func(ctx context.Context) (dsn string, err error)
	// Statement takes what Insert takes, and may do more.
	Statement string
	// Every is the time between two writes.
	Every time.Duration
}

// Scribe writes until Stop. It never writes a number twice: after an error nobody knows whether the row is there.
type Scribe struct {
	config Config
	cancel context.CancelFunc
	ended  chan struct{}

	mu        sync.Mutex
	tried     int
	confirmed []int
	last      time.Time // a row was confirmed
	longest   time.Duration
}

const (
	// writeTime bounds one write.
	writeTime = 10 * time.Second
	// pause is after a failure: who is not let in asks again so often, as applications do, and not as often as it can.
	pause = 50 * time.Millisecond
)

// Start begins to write.
func Start(c Config) *Scribe {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Scribe{config: c, cancel: cancel, ended: make(chan struct{})}
	go s.run(ctx)
	return s
}

// Stop ends it. The row that it writes just now it still writes.
func (s *Scribe) Stop() {
	s.cancel()
	<-s.ended
}

// Confirmed counts the rows that were confirmed.
func (s *Scribe) Confirmed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.confirmed)
}

// GetsOn waits until the scribe writes: two more rows are confirmed, of which it may have written the first already.
func (s *Scribe) GetsOn(t testing.TB) {
	t.Helper()
	before := s.Confirmed()
	check.Eventually(t, s.config.Name+": nothing is written", func() bool { return s.Confirmed() > before+1 })
}

// Longest is the longest time between two rows that were confirmed one after the other, since it was asked for last.
func (s *Scribe) Longest() (longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	longest, s.longest = s.longest, 0
	return longest
}

// Compare is an error where a row that was confirmed is not in the database, one is there twice, or one that nobody has written.
func (s *Scribe) Compare(ctx context.Context, db *sql.DB) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, err := db.QueryContext(ctx, "SELECT n, count(*) FROM entry WHERE who = $1 GROUP BY n", s.config.Name)
	if err != nil {
		return err
	}
	defer rows.Close()
	found := map[int]bool{}
	for rows.Next() {
		var n, times int
		if err := rows.Scan(&n, &times); err != nil {
			return err
		}
		if times > 1 || n > s.tried {
			return fmt.Errorf("%s: row %d of %d is there %d times", s.config.Name, n, s.tried, times)
		}
		found[n] = true
	}
	for _, n := range s.confirmed {
		if !found[n] {
			return fmt.Errorf("%s: row %d of %d was confirmed, and is not there", s.config.Name, n, s.tried)
		}
	}
	return rows.Err()
}

func (s *Scribe) run(ctx context.Context) {
	defer close(s.ended)
	var db *sql.DB
	for next := time.Now(); ctx.Err() == nil; {
		err := s.connected(ctx, &db)
		if err == nil {
			err = s.write(db)
		}
		if err != nil {
			if db != nil {
				_ = db.Close() // it is of no use any more
				db = nil
			}
			time.Sleep(pause)
			continue
		}
		next = next.Add(s.config.Every)
		if now := time.Now(); next.Before(now) {
			next = now
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(next)):
		}
	}
	if db != nil {
		_ = db.Close() // all that it was told was answered
	}
}

func (s *Scribe) connected(ctx context.Context, db **sql.DB) error {
	if *db != nil {
		return nil
	}
	dsn, err := s.config.Where(ctx)
	if err != nil {
		return err
	}
	if *db, err = sql.Open("postgres", dsn); err != nil {
		return err
	}
	(*db).SetMaxOpenConns(1)
	return (*db).PingContext(ctx)
}

func (s *Scribe) write(db *sql.DB) error {
	s.mu.Lock()
	s.tried++
	n := s.tried
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	done, err := db.ExecContext(ctx, s.config.Statement, s.config.Name, n)
	if err != nil {
		return err
	}
	if rows, err := done.RowsAffected(); err != nil || rows != 1 {
		return errors.Join(err, fmt.Errorf("%d rows were written", rows))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.last.IsZero() {
		s.longest = max(s.longest, now.Sub(s.last))
	}
	s.last, s.confirmed = now, append(s.confirmed, n)
	return nil
}
