//go:build linux && machines

package install

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/apiclient"
)

// application writes and reads all the time. What it has been told is written, it counts on; what it has not, it tries again.
// Where its connection is lost it asks the service for the host of its database.
type application struct {
	config *pgconn.Config
	api    *apiclient.Client
	of     *customer
	done   func()
	over   chan struct{}

	mu      sync.Mutex
	written []time.Time // when each number was
	began   time.Time   // when it first tried the next one
	longest time.Duration
	failure error
	excused map[int]bool // what was lost with a server
}

const (
	answersWithin = 3 * time.Second
	pauses        = 50 * time.Millisecond
)

func startApplication(t *testing.T, c *customer) *application {
	t.Helper()
	config := check.Must(pgconn.ParseConfig(c.url()))(t)
	config.ConnectTimeout, config.Fallbacks = answersWithin, nil
	a := &application{
		config: config, api: c.client(t, 1), of: c, over: make(chan struct{}), began: time.Now(), excused: map[int]bool{},
	}
	first := check.Must(pgconn.ConnectConfig(t.Context(), config))(t)
	_, err := first.Exec(t.Context(), "CREATE TABLE written (n bigint PRIMARY KEY, at timestamptz DEFAULT now())").ReadAll()
	check.NoError(t, err)
	check.NoError(t, first.Close(t.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	a.done = cancel
	go a.work(ctx)
	c.walk.t.Cleanup(func() { cancel(); <-a.over })
	return a
}

func (a *application) work(ctx context.Context) {
	defer close(a.over)
	var conn *pgconn.PgConn
	for n := 0; ctx.Err() == nil; n++ {
		for ctx.Err() == nil {
			var err error
			if conn, err = a.write(ctx, conn, n); err == nil {
				a.wrote()
				break
			}
			a.mu.Lock()
			a.failure = err
			a.mu.Unlock()
			time.Sleep(pauses)
		}
		time.Sleep(pauses)
		a.mu.Lock()
		a.began = time.Now()
		a.mu.Unlock()
	}
	if conn != nil {
		_ = conn.Close(context.Background()) // the server may be gone
	}
}

// write writes a number and reads it, on a connection that it may have to make.
func (a *application) write(ctx context.Context, conn *pgconn.PgConn, n int) (*pgconn.PgConn, error) {
	if conn == nil {
		var err error
		if conn, err = a.connect(ctx); err != nil {
			return nil, err
		}
	}
	within, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	results, err := conn.Exec(within, fmt.Sprintf("INSERT INTO written (n) VALUES (%d) ON CONFLICT DO NOTHING", n)).ReadAll()
	if err == nil {
		results, err = conn.Exec(within, fmt.Sprintf("SELECT n FROM written WHERE n = %d", n)).ReadAll()
	}
	if err == nil && (len(results) != 1 || len(results[0].Rows) != 1) {
		err = fmt.Errorf("%d was written, and is not there", n)
	}
	if err != nil {
		_ = conn.Close(within) // it may be lost
		return nil, err
	}
	return conn, nil
}

func (a *application) connect(ctx context.Context) (*pgconn.PgConn, error) {
	conn, err := pgconn.ConnectConfig(ctx, a.config)
	if err == nil {
		return conn, nil
	}
	asking, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	if is, askErr := a.api.Databases.Get(asking, a.of.shop.ID); askErr == nil && is.Host != a.config.Host {
		a.config.Host, a.config.TLSConfig.ServerName = is.Host, is.Host
	}
	return nil, err
}

func (a *application) wrote() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.written = append(a.written, time.Now())
	a.longest, a.failure = max(a.longest, time.Since(a.began)), nil
}

// waits is for how long the application has waited by now for what it tries.
func (a *application) waits() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.written) > 0 && !a.written[len(a.written)-1].Before(a.began) {
		return 0 // it pauses
	}
	return time.Since(a.began)
}

// chapter begins one, and returns what says for how long the application waited at most in it.
func (a *application) chapter() (waited func() time.Duration) {
	a.mu.Lock()
	a.longest = 0
	a.mu.Unlock()
	return func() time.Duration {
		pending := a.waits()
		a.mu.Lock()
		defer a.mu.Unlock()
		return max(a.longest, pending)
	}
}

// missing are the numbers that were written and are not there, but for those that are excused.
func (a *application) missing(t *testing.T) (numbers []int) {
	t.Helper()
	check.Eventually(t, "the application does not work", func() bool { return a.waits() < time.Second })
	a.mu.Lock()
	told := len(a.written)
	a.mu.Unlock()
	config := check.Must(pgconn.ParseConfig(a.of.url()))(t)
	config.Host, config.Fallbacks = a.of.named(t, "shop").Host, nil
	config.TLSConfig.ServerName = config.Host
	conn := check.Must(pgconn.ConnectConfig(t.Context(), config))(t)
	defer conn.Close(context.Background())
	there := map[int]bool{}
	for _, row := range check.Must(conn.Exec(t.Context(), "SELECT n FROM written").ReadAll())(t)[0].Rows {
		there[check.Must(strconv.Atoi(string(row[0])))(t)] = true
	}
	for n := range told {
		if !there[n] && !a.excused[n] {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// loses finds that nothing is missing but what was written last before a server was lost, and says how much that is.
func (a *application) loses(t *testing.T, at time.Time) {
	t.Helper()
	gone := a.missing(t)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(gone) == 0 {
		t.Log("nothing is lost")
		return
	}
	first, last := gone[0], gone[len(gone)-1]
	since := at.Sub(a.written[first])
	t.Logf("lost is what was written in the last %s: %d rows", since.Round(10*time.Millisecond), len(gone))
	if len(gone) != last-first+1 || last+1 < len(a.written) && a.written[last+1].Before(at) || since > time.Minute {
		t.Errorf("%d rows are missing between %d and %d, the first of %s before the loss", len(gone), first, last, since)
	}
	for _, n := range gone {
		a.excused[n] = true
	}
}

// end ends the application, and finds all that it was told is written.
func (a *application) end(t *testing.T) {
	t.Helper()
	if gone := a.missing(t); len(gone) > 0 {
		t.Errorf("%d rows are missing: %v", len(gone), gone[:min(len(gone), 10)])
	}
	a.done()
	<-a.over
	t.Logf("the application has written %d rows", len(a.written))
}
