package offsite

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

const (
	tpcbClients  = 4
	tpcbBranches = 4
	tpcbAccounts = 20000 // of a branch
)

// newTPCB makes the tables that pgbench has, and connects its clients.
func (w *world) newTPCB(t *testing.T) {
	t.Helper()
	for range tpcbClients {
		w.clients = append(w.clients, w.Owner(t, w.small))
	}
	check.Must(w.clients[0].Exec(`CREATE TABLE branches (bid int PRIMARY KEY, balance int, filler char(88));
		CREATE TABLE tellers (tid int PRIMARY KEY, bid int, balance int, filler char(84));
		CREATE TABLE accounts (aid int PRIMARY KEY, bid int, balance int, filler char(84));
		CREATE TABLE history (tid int, bid int, aid int, delta int, at timestamp, filler char(22));
		INSERT INTO branches SELECT n, 0 FROM generate_series(1, ` + strconv.Itoa(tpcbBranches) + `) n;
		INSERT INTO tellers SELECT n, n / 10 + 1, 0 FROM generate_series(1, ` + strconv.Itoa(10*tpcbBranches) + `) n;
		INSERT INTO accounts SELECT n, n / ` + strconv.Itoa(tpcbAccounts) + ` + 1, 0
			FROM generate_series(1, ` + strconv.Itoa(tpcbBranches*tpcbAccounts) + `) n`))(t)
}

// tpcb has clients run pgbench's transaction until ctx ends, or as many have been run as there are to be; 0: no matter how many.
func (w *world) tpcb(ctx context.Context, t *testing.T, most int64) (done int64) {
	t.Helper()
	var clients sync.WaitGroup
	var count atomic.Int64
	for _, db := range w.clients {
		clients.Go(func() {
			for ctx.Err() == nil && (most == 0 || count.Add(1) <= most) {
				n := func(most int) string { return strconv.Itoa(1 + rand.IntN(most)) }
				account, teller, branch, delta := n(tpcbBranches*tpcbAccounts), n(10*tpcbBranches), n(tpcbBranches), n(5000)
				_, err := db.Exec("BEGIN; UPDATE accounts SET balance = balance + " + delta + " WHERE aid = " + account +
					"; SELECT balance FROM accounts WHERE aid = " + account +
					"; UPDATE tellers SET balance = balance + " + delta + " WHERE tid = " + teller +
					"; UPDATE branches SET balance = balance + " + delta + " WHERE bid = " + branch +
					"; INSERT INTO history (tid, bid, aid, delta, at) VALUES (" + teller + ", " + branch + ", " + account + ", " + delta +
					", now()); COMMIT")
				if err != nil {
					t.Error(err)
					return
				}
				if most == 0 {
					count.Add(1)
				}
			}
		})
	}
	clients.Wait()
	return count.Load()
}

// busy has clients write, and says how long after its end a segment is stored, and what a day of that would take.
func (w *world) busy(t *testing.T) {
	t.Helper()
	before, programs := w.askedSoFar(t), w.computed(t, true)
	ctx, cancel := context.WithTimeout(t.Context(), w.long)
	defer cancel()
	done := make(chan int64, 1)
	written := w.written(t)
	go func() { done <- w.tpcb(ctx, t, 0) }()
	var lags []time.Duration
	last, dir := "", w.One(t, "SHOW data_directory")
	for ctx.Err() == nil || len(lags) == 0 {
		if ctx.Err() != nil { // it was too short for a whole segment
			check.Must(w.Super.Exec("SELECT pg_switch_wal()"))(t)
		}
		var name sql.NullString
		var at sql.NullTime
		check.NoError(t, w.Super.QueryRow("SELECT last_archived_wal, last_archived_time FROM pg_stat_archiver").Scan(&name, &at))
		if name.String != last {
			last = name.String
			if info, err := os.Stat(filepath.Join(dir, "pg_wal", last)); err == nil {
				lags = append(lags, at.Time.Sub(info.ModTime()))
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	transactions, bytes := <-done, w.written(t)-written
	slices.Sort(lags)
	t.Logf("busy: %.0f transactions and %.1f MB of WAL a second, %d segments; the archive's programs take %.1f %% of a core",
		float64(transactions)/w.long.Seconds(), float64(bytes)/1e6/w.long.Seconds(), len(lags),
		100*float64(w.computed(t, true)-programs)/float64(w.long))
	w.hold(t, "stored after its end, one in a hundred", lags[len(lags)*99/100], storedWithin)
	w.sayDay(t, "busy", before)
}

// written is how many bytes of WAL the server has written.
func (w *world) written(t *testing.T) int64 {
	t.Helper()
	return check.Must(strconv.ParseInt(w.One(t, "SELECT (pg_current_wal_lsn() - '0/0')::bigint::text"), 10, 64))(t)
}

// writers measures what it costs who writes that segments are stored meanwhile: pairs with and without, in turn.
func (w *world) writers(t *testing.T) {
	t.Helper()
	command := w.One(t, "SELECT quote_literal(current_setting('archive_command'))")
	ctx, cancel := context.WithTimeout(t.Context(), w.long/6)
	defer cancel()
	each := max(100, w.tpcb(ctx, t, 0)) // as many as take a sixth of the time
	var shares []float64
	for pair := range w.pairs {
		var took [2]time.Duration // without, and with
		for turn := range 2 {
			with := (pair + turn) % 2
			configure(t, w.Stack, "archive_command", []string{"''", command}[with])
			w.drained(t, with == 1)
			check.Must(w.Super.Exec("CHECKPOINT"))(t) // or one of the two writes more whole pages
			began := time.Now()
			w.tpcb(t.Context(), t, each)
			took[with] = time.Since(began)
		}
		shares = append(shares, took[1].Seconds()/took[0].Seconds()-1)
		t.Logf("%d transactions: %s without, %s with", each, took[0].Round(time.Millisecond), took[1].Round(time.Millisecond))
	}
	configure(t, w.Stack, "archive_command", command)
	w.drained(t, true)
	slices.Sort(shares)
	w.holdShare(t, "what archiving costs who writes, median of "+strconv.Itoa(len(shares)), shares[len(shares)/2], writersShare)
}

// drained waits until nothing waits to be stored, where it is to be.
func (w *world) drained(t *testing.T, stores bool) {
	t.Helper()
	if stores {
		patiently(t, "segments wait", func() bool {
			return w.One(t, "SELECT count(*)::text FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'") == "0"
		})
	}
}
