package relocate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
)

// A copy gives way to others in the moment in which its switch begins: the database is never shut, and the copy is dropped.
func TestSwitchToACopyThatGivesWay(t *testing.T) {
	s, w := agenttest.DatabaseStack(t)
	s.Saved(t, w)
	operation := agenttest.NewUUID()
	s.Ready(t, w, operation)
	client := s.PooledOwner(t, w)
	agenttest.Works(t, "a client", client)
	tx := check.Must(s.Super.Begin())(t)
	check.Must(tx.Exec("UPDATE ledger.copy SET until_closed = false WHERE operation_id = $1", operation))(t)
	ended := make(chan string, 1)
	go func() {
		_, reason, err := s.Send(w.Switching(operation))
		ended <- fmt.Sprint(reason, err)
	}()
	const waits = `SELECT count(*) FROM pg_stat_activity
		WHERE query LIKE '%ledger.begin_place(''restore_%' AND wait_event_type = 'Lock'`
	check.Eventually(t, "the switch does not begin", func() bool { return s.One(t, waits) == "1" })
	check.NoError(t, tx.Commit())
	if got := <-ended; !strings.HasPrefix(got, string(command.ReasonUnavailable)+":") {
		t.Errorf("the switch that had begun: %s", got)
	}
	agenttest.Works(t, "the client", client)
	s.RefusedFor(t, command.ReasonNotFound, w.Switching(operation))
	agenttest.Works(t, "the client", client)
	s.Done(t, agenttest.Closing(operation))
	s.NothingOf(t, operation)
}
