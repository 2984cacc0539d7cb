package dashboard

import (
	"time"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/querytimeout"
)

func (s *site) timeoutPages() []web.Page {
	const path = "/databases/{id}" + timeoutsTab
	return []web.Page{
		web.Get("timeouts", path, s.showTimeouts, "getQueryTimeouts"),
		web.Post("timeouts.set", path, path, s.setTimeouts, "setQueryTimeouts").Says("The profile is set, or about to be."),
	}
}

func (s *site) showTimeouts(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Own)
	if err != nil {
		return nil, err
	}
	state, err := s.use.QueryTimeouts.Get(r.Context(), d)
	if err != nil {
		return nil, err
	}
	facts := []web.Fact{
		{Name: "Wanted", Cell: web.Words(plain(state.TimeoutProfile))},
		{Name: "Confirmed by the server", Cell: web.Words(plain(state.TimeoutEffective))},
	}
	if f := state.InForce; f != nil {
		facts = append(facts,
			web.Fact{Name: "A statement takes at most", Cell: web.Words(limit(f.StatementMs))},
			web.Fact{Name: "A lock is waited for", Cell: web.Words(limit(f.LockMs))},
			web.Fact{Name: "Idle in a transaction", Cell: web.Words(limit(f.IdleInTransactionMs))})
	}
	t := &web.Table{
		Caption: "Profiles",
		Columns: []web.Column{{Title: "Profile"}, {Title: "Statement", Number: true}, {Title: "Lock", Number: true},
			{Title: "Idle in a transaction", Number: true}},
	}
	for _, p := range querytimeout.Profiles {
		l := querytimeout.Policy[p]
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			web.Words(plain(p)), web.Words(web.Span(l.Statement)), web.Words(web.Span(l.Lock)), web.Words(web.Span(l.IdleInTransaction)),
		}})
	}
	form := &web.Form{
		Name: "timeouts.set", Action: under(d.Record().ID, "timeouts"), Submit: "Set the profile",
		Fields: []*web.Field{{
			Name: "profile", Label: "Profile", Type: "select", Value: string(state.TimeoutProfile),
			Options: options(querytimeout.Profiles, ""),
			Help:    "New sessions begin with it. A session can choose its own limits.",
		}},
	}
	v := frame(d, timeoutsTab, "Timeouts")
	v.Sections = []*web.Section{
		{ID: "timeouts", Facts: facts, Forms: []*web.Form{form.Once(s.once())}}, {Title: "What the profiles are", Table: t},
	}
	if c := state.Change; c != nil && !c.Status.Final() {
		v.Sections[0].Links = []web.Link{{Text: "Follow the change", Href: "/operations/" + string(c.ID)}}
	}
	return v, nil
}

func limit(ms int64) string {
	if ms == 0 {
		return "no limit"
	}
	return web.Span(time.Duration(ms) * time.Millisecond)
}

func (s *site) setTimeouts(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Own)
	if err != nil {
		return nil, err
	}
	_, err = s.use.QueryTimeouts.Set(r.Context(), d, querytimeout.Profile(r.Field("profile")), idempotency.Key(r.Once()))
	return to(r, timeoutsTab), err
}
