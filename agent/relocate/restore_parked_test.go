package relocate_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
)

// standing begins a log-in through the pooler as the owner, and stands still before its n-th write until release is closed.
func standing(
	t *testing.T, s *agenttest.Stack, w agenttest.Wanted, entry string, at int, release chan struct{},
) (parked chan struct{}, db *sql.DB) {
	t.Helper()
	connector := check.Must(pq.NewConnector(s.PooledURL(entry, w.Name, w.Passwords[database.OwnerLogin])))(t)
	parked = make(chan struct{})
	connector.Dialer(agenttest.ParkingDialer{At: at, Parked: parked, Release: release})
	db = sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return parked, db
}

// Whoever stands in the middle of a log-in at the pooler does not stretch the time in which the database is closed, and sees what
// was restored when they come in after it.
func TestSwitchWaitsForNoLogin(t *testing.T) {
	s, w := agenttest.DatabaseStack(t)
	owner := s.Owner(t, w)
	check.Must(owner.Exec("CREATE TABLE word AS SELECT 'old' AS said"))(t)
	s.Saved(t, w)
	check.Must(owner.Exec("UPDATE word SET said = 'new'"))(t)
	operation, release := agenttest.NewUUID(), make(chan struct{})
	s.Ready(t, w, operation)
	heard := make(chan string, 20)
	logins := 0
	for _, entry := range []string{w.Name, w.Name + ".transaction"} {
		for at := 4; at <= 6; at++ { // the startup message, and the two of SCRAM
			parked, db := standing(t, s, w, entry, at, release)
			logins++
			go func() {
				var said string
				if err := db.QueryRow("SELECT said FROM word").Scan(&said); err != nil {
					said = "error"
				}
				heard <- said
			}()
			<-parked
		}
	}
	began := time.Now()
	s.Done(t, w.Switching(operation))
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the switch took %s", took)
	}
	close(release)
	old := 0
	for range logins {
		switch <-heard {
		case "new":
			t.Error("a log-in has led to the replaced database")
		case "old":
			old++
		}
	}
	if old == 0 {
		t.Error("no log-in of before has led to the restored database")
	}
	s.Discarded(t, w, operation)
}
