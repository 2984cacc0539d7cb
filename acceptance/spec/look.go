package spec

import (
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/recovery"
)

// looking is about what a database held at moments, which is only looked at.
var looking = []Scenario{
	{Name: "two moments are compared, and nothing changes", Both: true, Needs: []Ability{Archives, Restoring}, Play: func(s *Stage) {
		ada, made := s.Clonable()
		session := s.Connects(made.Login())
		s.OK(session.Write("first"))
		s.hasWindow(ada, made)
		from := s.moment()
		s.OK(session.Write("second", "third"))
		to := s.moment()
		s.OK(session.Write("fourth"))
		ask, key := wire.CompareMoments{From: from, To: to}, apiclient.IdempotencyKey(s.Name("key"))
		begun := must(ada.Recovery.CompareMoments(ctx, made.ID, ask, key))(s).Operation
		s.That(begun.Type == "comparison" && begun.DatabaseID == made.ID, "it began as %+v", begun)
		done := ada.Follows(begun)
		s.That(done.Status == "succeeded", "it is %+v: %+v", done, done.Error)
		var c recovery.Comparison
		s.OK(json.Unmarshal(*done.Result, &c))
		s.That(len(c.Tables) == 1 && c.Tables[0].Table == "note" && c.Tables[0].Change == recovery.RowsDiffer &&
			*c.Tables[0].Before == recovery.Count{Rows: 1} && *c.Tables[0].After == recovery.Count{Rows: 3},
			"its result is %s", *done.Result)
		s.That(must(ada.Recovery.CompareMoments(ctx, made.ID, ask, key))(s).Operation.ID == begun.ID,
			"the same request makes another one")
		s.That(session.Alive(), "a session was ended")
		s.only(ada.ReadsActivity(made.ID), "comparison.requested")
		s.only(ada.ReadsActivity(made.ID), "comparison.finished")
	}},
	{Name: "the second of a change is found, and only who may search sees what was found", Needs: []Ability{Archives, Restoring},
		Play: func(s *Stage) {
			ada, made := s.Clonable()
			session := s.Connects(made.Login())
			s.OK(session.Write("first"))
			s.hasWindow(ada, made)
			from := s.moment()
			s.OK(session.Write("second"))
			s.Pass(3 * time.Second)
			before := s.now()
			s.OK(session.Write("third"))
			after := s.now()
			to := s.moment()
			ask := wire.FindMoment{Query: "SELECT count(*) FROM note", Until: "> 2", From: &from, To: &to}
			begun := must(ada.Recovery.FindMoment(ctx, made.ID, ask))(s).Operation
			done := ada.Follows(begun)
			s.That(begun.Type == "search" && done.Status == "succeeded", "it is %+v: %+v", done, done.Error)
			var r recovery.SearchResult
			s.OK(json.Unmarshal(*done.Result, &r))
			for _, c := range []*Customer{
				ada.member(made, account.Admin), ada.member(made, account.Developer), ada.member(made, account.Viewer),
				s.WithKey(ada.Account, made.ID),
			} {
				seen, all := must(c.Operations.Get(ctx, done.ID))(s), c.ListsOperations(made.ID)
				s.That(seen.Status == "succeeded" && seen.Result == nil, "it is shown as %+v", seen)
				s.noSecretIn([]any{seen, all, c.ReadsActivity(made.ID)}, "count(*)", "notYet", "> 2")
			}
			s.That(ada.ListsOperations(made.ID)[0].Result != nil, "the owner's list lacks the result")
			s.That(r.Outcome == recovery.Changed && !r.NotYet.After(after) &&
				!r.Since.Before(before) && r.Since.Sub(*r.NotYet) <= time.Second,
				"its result is %s", *done.Result)
			never := ask
			never.Until = "> 1000"
			s.OK(json.Unmarshal(*ada.Follows(must(ada.Recovery.FindMoment(ctx, made.ID, never))(s).Operation).Result, &r))
			s.That(r.Outcome == recovery.Never && r.Since == nil && len(r.Looks) == 2, "its result is %+v", r)
		}},
	{Name: "looks name moments and what is asked, of an enrolled database of the account's own", Play: func(s *Stage) {
		ada, made := s.Owner()
		from, to := s.now().Add(-time.Hour).Format(time.RFC3339), s.now().Format(time.RFC3339)
		compare := func(c *Customer, from, to string) error {
			return refusal(c.Recovery.CompareMoments(ctx, made.ID, wire.CompareMoments{From: from, To: to}))
		}
		find := func(c *Customer, change func(*wire.FindMoment)) error {
			b := wire.FindMoment{Query: "SELECT 1", Until: "= 1", From: &from, To: &to}
			change(&b)
			return refusal(c.Recovery.FindMoment(ctx, made.ID, b))
		}
		same := func(*wire.FindMoment) {}
		s.Refused(compare(ada, from, to), "FEATURE_NOT_AVAILABLE")
		s.Refused(find(ada, same), "FEATURE_NOT_AVAILABLE")
		s.OK(s.Operator.Enroll(made.ID, "clone"))
		local := "2026-03-01T11:30:00"
		s.Refused(compare(ada, local, to), "VALIDATION_ERROR", "from")
		s.Refused(compare(ada, from, local), "VALIDATION_ERROR", "to")
		s.Refused(compare(ada, to, from), "VALIDATION_ERROR", "to")
		s.Refused(find(ada, func(b *wire.FindMoment) { b.From = &local }), "VALIDATION_ERROR", "from")
		s.Refused(find(ada, func(b *wire.FindMoment) { b.To = &local }), "VALIDATION_ERROR", "to")
		s.Refused(find(ada, func(b *wire.FindMoment) { b.From, b.To = b.To, b.From }), "VALIDATION_ERROR", "to")
		s.Refused(find(ada, func(b *wire.FindMoment) { b.Until = "1000" }), "VALIDATION_ERROR", "until")
		s.Refused(find(ada, func(b *wire.FindMoment) { b.Query = " " }), "VALIDATION_ERROR", "query")
		for code, c := range map[fault.Code]*Customer{
			fault.DatabaseNotFound: s.Customer("pro"), fault.KeyScopeDenied: s.WithKey(ada.Account, made.ID),
		} {
			s.Refused(compare(c, from, to), code)
			s.Refused(find(c, same), code)
		}
		s.That(len(ada.ListsOperations(made.ID)) == 0, "they left operations")
	}},
}
