package spec

import (
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// closedWithin is the promise: so soon nobody is in a database of a suspended account any more.
const closedWithin = 5 * time.Second

var suspending = []Scenario{
	{Name: "a suspended account is refused, and told why, until it is resumed", Play: func(s *Stage) {
		ada, bob := s.Customer("pro"), s.Customer("pro")
		made, theirs := ada.Creates("shop"), bob.Creates("own")
		ci := s.Pipeline(ada)
		preview := must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "main"}))(s).Data
		ada.Admits(bob, made, "admin")
		bob.Admits(ada, theirs, "admin")
		guest, visitor := s.WithKey(bob.Account, made.ID), s.WithKey(ada.Account, theirs.ID)

		s.OK(s.Operator.Suspend(ada.Account, "the bill of May is unpaid"))
		for _, err := range []error{
			refusal(ada.Databases.List().Page(ctx, apiclient.Page{})), refusal(ada.Databases.Get(ctx, made.ID)),
			refusal(ada.CreateDatabase(NewDatabase{Name: s.Name("more"), DisplayName: "D"})), refusal(ada.SetLifecycle(made.ID, "stop")),
			refusal(visitor.Databases.Get(ctx, theirs.ID)),
			refusal(ci.Previews.Get(ctx, preview.DatabaseID)), refusal(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "next"})),
		} {
			why := s.Refused(err, "ACCOUNT_SUSPENDED")
			s.That(strings.Contains(why.Message, "the bill of May is unpaid"), "it says %q", why.Message)
		}
		for _, err := range []error{refusal(guest.Databases.Get(ctx, made.ID)), refusal(guest.SetLifecycle(made.ID, "stop"))} {
			why := s.Refused(err, "ACCOUNT_SUSPENDED")
			s.That(!strings.Contains(why.Message, "unpaid"), "a member is told %q", why.Message)
		}
		bob.Sees(theirs.ID)

		s.OK(s.Operator.Resume(ada.Account, "paid"))
		s.That(ada.Sees(made.ID).Status == "active", "it is %s", ada.Sees(made.ID).Status)
		guest.Sees(made.ID)
		must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "next"}))(s)
		ada.FinishesBackup(made.ID)
	}},
	{Name: "a suspension closes the databases at once, and afterwards everybody gets in again as before", Play: func(s *Stage) {
		ada, made := s.Owner()
		stopped := ada.Creates("stopped")
		ada.Sets(stopped.ID, "stop", "stopped")
		_, reports := ada.AddsLogin(made, "Reports", "read_only")
		second := made.Login()
		second.Database += ".transaction"
		logins := []Login{made.Login(), second, ada.RevealsLogin(made, "runtime").LogIn(), reports}
		var held []Session
		for _, l := range logins {
			held = append(held, s.Connects(l))
		}

		s.OK(s.Operator.Suspend(ada.Account, "unpaid"))
		suspended := time.Now()
		for i, one := range held {
			s.Eventually(logins[i].Username+" is out", one.Ended)
		}
		took := time.Since(suspended)
		s.That(took <= closedWithin, "they were out after %s", took)
		for _, l := range logins {
			s.ShutOut(l)
		}

		s.OK(s.Operator.Resume(ada.Account, "paid"))
		for _, l := range logins {
			s.Eventually(l.Username+" gets in", func() bool { return s.getsIn(l) })
		}
		s.ShutOut(stopped.Login())
		s.That(ada.Sees(stopped.ID).Status == "stopped", "it is %s", ada.Sees(stopped.ID).Status)
		ada.Sets(stopped.ID, "start", "active")
		s.Connects(stopped.Login())
	}},
	{Name: "a suspension reaches a server whose agent was away", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		held := s.Connects(made.Login())
		s.losesAgent()
		s.OK(s.Operator.Suspend(ada.Account, "unpaid"))
		s.Pass(5 * time.Second)
		s.OK(s.Agent.Start())
		s.Eventually("the held client is out", held.Ended)
		s.ShutOut(made.Login())

		s.losesAgent()
		s.OK(s.Operator.Resume(ada.Account, "paid"))
		s.OK(s.Agent.Start())
		s.Eventually("they get in", func() bool { return s.getsIn(made.Login()) })
	}},
}
