package logins_test

import (
	"database/sql/driver"
	"testing"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
)

// session is a log-in to PostgreSQL itself, over the bare driver.
func session(t testing.TB, s *agenttest.Stack, l agenttest.LoginOf) driver.Conn {
	t.Helper()
	connector := check.Must(pq.NewConnector(s.PG.URLFor(l.Username, l.Password, l.Name)))(t)
	return check.Must(connector.Connect(t.Context()))(t)
}
