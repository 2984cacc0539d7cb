package spec

import (
	"strings"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/slowquery"
)

var slowing = []Scenario{
	{Name: "what a database's logins run is counted, by its text without constants, for that database alone", Play: func(s *Stage) {
		ada, made := s.Owner()
		other := ada.Creates("other")
		s.OK(s.Connects(made.Login()).Write("one", "two", "three"))
		for _, o := range slowquery.Orders {
			slow := ada.SeesSlowQueries(made, o)
			s.That(slow.Order == o && !slow.Since.IsZero(), "it is %+v", slow)
			q := s.insertion(slow)
			s.That(q.Calls == 3 && q.Rows == 3 && q.Username == made.Username && q.Query == "INSERT INTO note VALUES ($1)" && q.ID != "" &&
				q.TotalMs > 0 && q.MeanMs > 0 && q.MaxMs >= q.MeanMs, "by %s it is %+v", o, q)
		}
		for _, q := range ada.SeesSlowQueries(other, "").Queries {
			s.That(!strings.Contains(q.Query, "note"), "another database has %+v", q)
		}
	}},
	{Name: "the statements of a stopped database are still shown", Play: func(s *Stage) {
		ada, made := s.Owner()
		s.OK(s.Connects(made.Login()).Write("one"))
		ada.Sets(made.ID, "stop", "stopped")
		s.That(s.insertion(ada.SeesSlowQueries(made, "")).Calls == 1, "they are not")
	}},
	{Name: "there is no other order of statements", Play: func(s *Stage) {
		ada, made := s.Owner()
		for _, query := range []string{"?order=rows", "?order=", "?order=total&order=mean"} {
			s.Refused(s.sends(Request{
				Method: "GET", Path: made.path("/slow-queries" + query), Key: ada.Key.Text, From: s.someAddress(),
			}).refusal(), "VALIDATION_ERROR", "order")
		}
	}},
	{Name: "without the agent nobody is told which statements are slow", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.losesAgent()
		s.Refused(refusal(ada.SlowQueries.Get(ctx, made.ID, "")), "AGENT_ERROR")
	}},
	{Name: "an agent that is too old says nothing of statements", Needs: []Ability{AgesAgents}, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.OldAgent(true)
		s.Refused(refusal(ada.SlowQueries.Get(ctx, made.ID, "")), "AGENT_ROUTE_UNAVAILABLE")
		s.OldAgent(false)
	}},
	{Name: "no statement that holds a password is shown", Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
		ada, made := s.Owner()
		const secret = "geheim-4711"
		for _, statement := range []string{
			"SELECT '" + secret + "' AS a", "SELECT 1 /* " + secret + " */", "SET app.key = '" + secret + "'",
			`SET app.key = "` + secret + `"`, "DO $$ BEGIN PERFORM '" + secret + "'; END $$",
			`ALTER ROLE "` + made.Username + `" PASSWORD '` + made.Password + `'`,
		} {
			must(s.SQL.Run(made.Login(), statement))(s)
		}
		slow := ada.SeesSlowQueries(made, "calls")
		s.That(len(slow.Queries) > 0, "nothing is shown")
		s.noSecretIn(slow, secret, made.Password)
	}},
}

// SeesSlowQueries returns the statements of a database, the first in an order; by time in all, where none is given.
func (c *Customer) SeesSlowQueries(of Created, o slowquery.Order) wire.SlowQueries {
	c.stage.Helper()
	return must(c.SlowQueries.Get(ctx, of.ID, string(o)))(c.stage)
}

// insertion is what sessions write notes with.
func (s *Stage) insertion(slow wire.SlowQueries) wire.SlowQuery {
	s.Helper()
	for _, q := range slow.Queries {
		if strings.HasPrefix(q.Query, "INSERT INTO note") {
			return q
		}
	}
	s.Fatalf("no statement writes notes: %+v", slow)
	return wire.SlowQuery{}
}
