package spec

import (
	"encoding/json"
	"slices"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/querytimeout"
)

var limitingQueries = []Scenario{
	{Name: "a profile is set, shown, and set once by its key", Play: func(s *Stage) {
		ada, made := s.Owner()
		s.Pass(glance)
		before := ada.SeesTimeouts(made.ID)
		s.That(before.DesiredProfile == "not_configured" && before.EffectiveProfile == "not_configured" &&
			before.Operation == nil && before.DatabaseOID != nil && before.Current != nil, "it begins with %+v", before)
		first := ada.SetsTimeouts(made.ID, "short", "one")
		s.That(first.Generation > before.Generation && *first.DatabaseOID == *before.DatabaseOID &&
			*first.Current == wire.TimeoutValues{StatementTimeoutMs: 15_000, LockTimeoutMs: 1_000, IdleInTransactionTimeoutMs: 5_000},
			"it is %+v, in force %+v", first, first.Current)
		s.Pass(glance)
		second := ada.SetsTimeouts(made.ID, "standard", "two")
		again := must(ada.SetQueryTimeouts(made.ID, "short", "one"))(s)
		s.That(*again.Operation == *first.Operation && again.EffectiveProfile == "standard", "the repetition gives %+v", again)
		s.That(*ada.SeesTimeouts(made.ID).Operation == *second.Operation, "the last change is %+v", ada.SeesTimeouts(made.ID).Operation)
		s.Refused(refusal(ada.SetQueryTimeouts(made.ID, "balanced", "one")), "QUERY_TIMEOUT_CONFLICT")
		log := ada.ReadsActivity(made.ID)
		s.That(log[0].Action == "query_timeouts.changed" && log[0].Details["from"] == "short" && log[0].Details["to"] == "standard" &&
			log[1].Action == "query_timeouts.changed", "the log is %+v", log)
		s.That(len(ada.ListsOperations(made.ID)) == 0, "it is listed as %+v", ada.ListsOperations(made.ID))
	}},
	{Name: "the owner's key for this database sets query timeouts", Play: func(s *Stage) {
		ada, made := s.Owner()
		s.WithKey(ada.Account, made.ID).SetsTimeouts(made.ID, "balanced", "one")
		s.That(ada.SeesTimeouts(made.ID).EffectiveProfile == "balanced", "it is %+v", ada.SeesTimeouts(made.ID))
	}},
	{Name: "every login gets the new timeouts through both entries but one with its own, and an open transaction goes on",
		Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
			ada, made := s.Owner()
			logins := []Login{made.Login(), ada.RevealsLogin(made, "runtime").LogIn()}
			for _, l := range logins {
				s.times(l, "0")
			}
			own := ada.RevealsLogin(made, "readonly").LogIn()
			must(s.SQL.Run(own, `ALTER ROLE "`+own.Username+`" IN DATABASE "`+made.Name+`" SET statement_timeout = '7s'`))(s)
			held := must(s.SQL.Talk(made.Login()))(s)
			defer held.Close()
			must(held.Say("BEGIN"))(s)
			must(held.Say("CREATE TABLE kept ()"))(s)
			set := ada.SetsTimeouts(made.ID, "balanced", "one")
			kept := wire.RoleTimeoutOverride{Role: own.Username, Setting: "statement_timeout", Value: "7s"}
			s.That(slices.Equal(*set.RoleOverrides, []wire.RoleTimeoutOverride{kept}), "the overrides are %v", *set.RoleOverrides)
			for _, l := range logins {
				s.times(l, "30s")
			}
			s.times(own, "7s")
			must(held.Say("COMMIT"))(s)
			must(s.SQL.Run(made.Login(), "SELECT FROM kept"))(s)
		}},
}

// SetQueryTimeouts chooses a profile.
func (c Client) SetQueryTimeouts(of id.DatabaseID, p querytimeout.Profile, key string) (wire.QueryTimeouts, error) {
	return c.QueryTimeouts.Set(ctx, of, wire.SetQueryTimeouts{Profile: p}, apiclient.IdempotencyKey(key))
}

// SetsTimeouts chooses a profile, and sees it in effect.
func (c *Customer) SetsTimeouts(of id.DatabaseID, p querytimeout.Profile, key string) wire.QueryTimeouts {
	c.stage.Helper()
	t := must(c.SetQueryTimeouts(of, p, key))(c.stage)
	c.stage.That(t.Operation.Status == operation.Succeeded && t.DesiredProfile == p && t.EffectiveProfile == p,
		"it is %+v, %+v", t, t.Operation)
	return t
}

// SeesTimeouts returns the query timeouts of a database.
func (c *Customer) SeesTimeouts(of id.DatabaseID) wire.QueryTimeouts {
	c.stage.Helper()
	return must(c.QueryTimeouts.Get(ctx, of))(c.stage)
}

// shownWithoutAgent fails the story unless the record is there, and what only the server knows is null.
func (s *Stage) shownWithoutAgent(c *Customer, of id.DatabaseID, want querytimeout.Profile) {
	s.Helper()
	var answer apiclient.Response
	seen := must(c.QueryTimeouts.Get(ctx, of, apiclient.KeepResponse(&answer)))(s)
	s.That(seen.DesiredProfile == want && seen.EffectiveProfile == want, "it is %+v", seen)
	var body struct{ Data map[string]json.RawMessage }
	s.OK(json.Unmarshal(answer.Body, &body))
	for _, field := range []string{"databaseOid", "current", "roleOverrides"} {
		s.That(string(body.Data[field]) == "null", "%s is %s", field, body.Data[field])
	}
}

// beginsTimeouts chooses a profile that the server cannot set now: the change is open and keeps other work away.
func (s *Stage) beginsTimeouts(c *Customer, of id.DatabaseID, p querytimeout.Profile) {
	s.Helper()
	begun := must(c.SetQueryTimeouts(of, p, "one"))(s)
	s.That(begun.Operation.Status == operation.Running && begun.DesiredProfile == p && begun.EffectiveProfile == "not_configured",
		"it is %+v, %+v", begun, begun.Operation)
	s.Refused(refusal(c.SetQueryTimeouts(of, p, "two")), "QUERY_TIMEOUT_CONFLICT")
	for _, action := range []database.Event{"stop", "restart"} {
		s.Refused(refusal(c.SetLifecycle(of, action)), "DATABASE_STATE_CONFLICT")
	}
}

// times fails the story unless a login's statements are limited so through both entries.
func (s *Stage) times(l Login, want string) {
	s.Helper()
	for _, entry := range []string{"", ".transaction"} {
		through := l
		through.Database += entry
		got := must(s.SQL.Run(through, "SHOW statement_timeout"))(s)
		s.That(slices.Equal(got, []string{want}), "%s at %s has %v; want %s", l.Username, through.Database, got, want)
	}
}
