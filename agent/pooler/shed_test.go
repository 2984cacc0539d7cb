package pooler

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

// fullLimit is what a test fills. Two databases with equal caps have a share of 140 each.
const fullLimit = 350

func bothHalves(context.Context) ([]Holding, error) {
	return []Holding{{"shop", "crowding", 8}, {"blog", "", 8}}, nil
}

// limited lets PgBouncer take fullLimit clients, of any entry.
func (s *stack) limited(t *testing.T) *Pooler {
	t.Helper()
	state := s.defaultState()
	state.Settings.MaxClients, state.Settings.MaxDatabaseClients = fullLimit, 2*fullLimit
	p := New(state.Settings, s.owner)
	t.Cleanup(p.Close)
	check.NoError(t, p.Apply(t.Context(), state))
	return p
}

// fill lets clients in until PgBouncer refuses one, and returns them, the oldest first.
func (s *stack) fill(t *testing.T, entry, login string) (in []*sql.Conn) {
	t.Helper()
	for len(in) <= fullLimit {
		db := s.client(entry, login, "")
		t.Cleanup(func() { _ = db.Close() })
		conn, err := db.Conn(t.Context())
		if err != nil {
			if !strings.Contains(err.Error(), "max_client_conn") {
				t.Fatal(err)
			}
			return in
		}
		in = append(in, conn)
	}
	t.Fatal("PgBouncer is never full")
	return nil
}

// into lets one client in, which holds no server connection yet.
func (s *stack) into(t *testing.T, entry, login string) *sql.Conn {
	t.Helper()
	db := s.client(entry, login, "")
	t.Cleanup(func() { _ = db.Close() })
	return check.Must(db.Conn(t.Context()))(t)
}

// begin opens a transaction in which something was done.
func begin(t *testing.T, conn *sql.Conn) *sql.Tx {
	t.Helper()
	tx, err := conn.BeginTx(context.Background(), nil)
	if err == nil {
		_, err = tx.Exec("SELECT 1")
	}
	check.NoError(t, err)
	return tx
}

// crowded fails a test in which there is room for another log-in.
func (s *stack) crowded(t *testing.T) {
	t.Helper()
	if err := s.enter(t, "blog", "blog", ""); err == nil {
		t.Fatal("there is room for others: the test shows nothing")
	}
}

// shedsFor ends clients, and demands that this lets a bystander in and does the given bystanders no harm.
func (s *stack) shedsFor(t *testing.T, p *Pooler, bystanders ...*sql.Conn) Load {
	t.Helper()
	began := time.Now()
	load := check.Must(p.Shed(t.Context(), bothHalves))(t)
	t.Logf("%+v in %s", load, time.Since(began))
	check.NoError(t, s.enter(t, "blog", "blog", ""), "a bystander's log-in")
	for _, conn := range bystanders {
		check.NoError(t, one(conn), "a bystander's client")
	}
	return load
}

func TestIdleClientsMakeRoom(t *testing.T) {
	s := realStack(t)
	p := s.limited(t)
	bystanders := []*sql.Conn{s.into(t, "blog", "blog"), s.into(t, "blog.transaction", "blog")}
	old := begin(t, s.into(t, "shop.transaction", "shop"))
	later := s.into(t, "shop.transaction", "shop")
	crowd := s.fill(t, "shop", "shop")
	young := begin(t, later)
	s.crowded(t)
	load := s.shedsFor(t, p, bystanders...)
	if len(load.Ended) != 1 || load.Ended[0].Idle < 100 || load.Ended[0].Waiting > 0 {
		t.Errorf("%+v, want about 105 idle clients of shop", load)
	}
	for _, tx := range []*sql.Tx{old, young} {
		check.NoError(t, tx.Commit(), "a transaction")
	}
	oldest, newest := crowd[0], crowd[len(crowd)-1]
	check.NoError(t, one(oldest), "the oldest client")
	if err := one(newest); err == nil {
		t.Error("the newest client stays")
	}
	if again, err := p.Shed(t.Context(), bothHalves); err != nil || len(again.Ended) > 0 || again.Clients > fullLimit*highMark/100 {
		t.Errorf("the next time: %+v, %v", again, err)
	}
}

// Where nobody is idle, those go that wait for a server connection.
func TestWaitingClientsMakeRoom(t *testing.T) {
	s := realStack(t)
	p := s.limited(t)
	bystander := s.into(t, "blog", "blog")
	var open []*sql.Tx
	for range 2 { // the transaction share of a cap of 8
		open = append(open, begin(t, s.into(t, "shop.transaction", "shop")))
	}
	answers := make(chan error, fullLimit)
	crowd := s.fill(t, "shop.transaction", "shop")
	for _, conn := range crowd {
		go func() { answers <- one(conn) }()
	}
	awaitWaiting(t, p, len(crowd))
	if clients, longest, err := NewReport(p.Console).Waits(t.Context()); clients != int64(len(crowd)) || longest <= 0 || err != nil {
		t.Errorf("%d clients wait, the first for %s, %v; want %d", clients, longest, err, len(crowd))
	}
	s.crowded(t)
	load := s.shedsFor(t, p, bystander)
	if len(load.Ended) != 1 || load.Ended[0].Waiting < 60 || load.Ended[0].Idle > 0 {
		t.Errorf("%+v, want about 70 waiting clients of shop", load)
	}
	for _, tx := range open {
		check.NoError(t, tx.Commit(), "a transaction")
	}
	served := 0
	for range crowd {
		if err := <-answers; err == nil {
			served++
		}
	}
	if want := len(crowd) - load.Ended[0].Waiting; served != want {
		t.Errorf("%d of those that waited were served, want %d", served, want)
	}
}

// awaitWaiting waits until so many clients wait for a server connection.
func awaitWaiting(t *testing.T, p *Pooler, n int) {
	t.Helper()
	check.Eventually(t, "the clients do not wait", func() bool {
		waits := 0
		for _, pool := range check.Must(p.Pools(t.Context()))(t) {
			waits += int(pool.ClientWaiting)
		}
		return waits >= n
	})
}
