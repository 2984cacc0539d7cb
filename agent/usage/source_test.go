package usage_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/usage"
)

// used adds up what an agent has seen of a database since the last question.
type used struct {
	*agenttest.Stack
	of    agenttest.Wanted
	after string
	sum   usage.Activity
}

func (u *used) asks(t *testing.T) usage.Activity {
	t.Helper()
	status, text, err := u.Request(http.MethodGet, "/v1/usage/"+u.after, nil)
	var answer command.Used
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, text, err)
	}
	u.after = answer.Next
	for _, stretch := range answer.Stretches {
		for _, d := range stretch.Databases {
			if d.DatabaseID == u.of.DatabaseID() {
				u.sum.SeenMs, u.sum.ActiveMs, u.sum.Queries = u.sum.SeenMs+d.SeenMs, u.sum.ActiveMs+d.ActiveMs, u.sum.Queries+d.Queries
				u.sum.ActivePeak = max(u.sum.ActivePeak, d.ActivePeak)
			}
		}
	}
	return u.sum
}

// becomes waits until what was seen is as wanted.
func (u *used) becomes(t *testing.T, what string, wanted func(usage.Activity) bool) {
	t.Helper()
	for until := time.Now().Add(check.Patience); !wanted(u.asks(t)); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s: %+v", what, u.sum)
		}
	}
}

// What a customer does through either entry is seen, and counts once, also where PgBouncer begins anew.
func TestUseOfARealPooler(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t).Start(t)
	u := &used{Stack: s, of: s.Made(t, database.Managed), after: command.UsageFromStart}
	login, password := u.of.Login(database.OwnerLogin)
	queries := func(n int) {
		t.Helper()
		for _, entry := range []string{u.of.Name, u.of.Name + ".transaction"} {
			db := s.Pooled(t, entry, login, password)
			for range n {
				check.Must(db.Exec("SELECT 1"))(t)
			}
			check.NoError(t, db.Close())
		}
	}
	u.becomes(t, "a database without clients", func(a usage.Activity) bool { return a.SeenMs > 0 })
	if u.sum != (usage.Activity{SeenMs: u.sum.SeenMs}) {
		t.Errorf("nobody was there: %+v", u.sum)
	}
	conn := check.Must(s.Pooled(t, u.of.Name, login, password).Conn(t.Context()))(t)
	check.NoError(t, conn.PingContext(t.Context()))
	queries(40)
	u.becomes(t, "81 queries", func(a usage.Activity) bool { return a.Queries >= 81 && a.ActiveMs > 0 && a.ActivePeak >= 1 })

	check.NoError(t, s.Bouncer.Kill())
	s.StartBouncer(t.Context(), t)
	check.Eventually(t, "PgBouncer is back", func() bool { return s.Pooled(t, u.of.Name, login, password).Ping() == nil })
	before := u.sum.Queries
	queries(20)
	u.becomes(t, "40 queries more", func(a usage.Activity) bool { return a.Queries >= before+40 })
	u.becomes(t, "some time more", func(a usage.Activity) bool { return a.SeenMs >= 10_000 })
	if u.sum.Queries > 140 || before > 82 {
		t.Errorf("%d queries before, and %d after", before, u.sum.Queries)
	}
}
