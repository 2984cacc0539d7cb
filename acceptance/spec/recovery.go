package spec

import (
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
)

// windowing is about the moments as of which a database can be had back.
var windowing = []Scenario{
	{Name: "whoever sees a database sees as of which seconds it can be had back, and what is missing",
		Needs: []Ability{Archives}, Alone: true, Play: func(s *Stage) {
			ada, made := s.Owner()
			s.OK(s.Connects(made.Login()).Write("kept"))
			s.hasWindow(ada, made)
			from, to := s.losesSegments()
			for _, c := range []*Customer{
				ada, s.WithKey(ada.Account, made.ID), ada.member(made, account.Viewer), ada.member(made, account.Developer),
			} {
				w := s.hasWindow(c, made)
				s.That(w.Archived && w.PlanDays == 3 && w.LastDrill == nil && len(w.Gaps) == 1 && w.Gaps[0].Reason == "segments_missing" &&
					w.Gaps[0].From.Equal(from) && w.Gaps[0].To.Equal(to), "it is %+v", w)
				s.That(!w.From.After(w.Gaps[0].From) && !w.Gaps[0].To.After(*w.To), "it is %+v", w)
			}
			s.Refused(refusal(s.Customer("pro").Recovery.GetWindow(ctx, made.ID)), "DATABASE_NOT_FOUND")
		}},
	{Name: "without an archive, or on a plan without recovery, nothing can be had back, and a client sees why",
		Needs: []Ability{Archives}, Alone: true, Play: func(s *Stage) {
			ada, made := s.Owner()
			s.OK(s.Operator.SetPITR(ada.Account, 0))
			w := must(ada.Recovery.GetWindow(ctx, made.ID))(s)
			s.That(w.From == nil && w.To == nil && len(w.Gaps) == 0 && w.Archived && w.PlanDays == 0, "it is %+v", w)
			s.OK(s.Operator.SetPITR(ada.Account, 5))
			s.OK(s.Archive.Keep(false))
			s.finally(func() error { return s.Archive.Keep(true) })
			w = must(ada.Recovery.GetWindow(ctx, made.ID))(s)
			s.That(w.From == nil && w.To == nil && len(w.Gaps) == 0 && !w.Archived && w.PlanDays == 5, "it is %+v", w)
		}},
	{Name: "no window reaches further back than the plan", Needs: []Ability{Archives, MovesTime}, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.OK(s.Clock.Advance(4 * 24 * time.Hour))
		w := s.hasWindow(ada, made)
		s.That(!s.Clock.Now().AddDate(0, 0, -3).After(*w.From) && w.To.Sub(*w.From) <= 3*24*time.Hour, "it is %+v", w)
	}},
	{Name: "a deleted database can be had back up to its deletion, as long as it can be recovered",
		Needs: []Ability{Archives, Restoring}, Play: func(s *Stage) {
			ada, made := s.Deletable()
			selected := s.WithKey(ada.Account, made.ID)
			s.hasWindow(ada, made)
			s.Pass(2 * time.Second)
			ada.Drops(made)
			s.Pass(2 * time.Second)
			w := s.hasWindow(ada, made)
			s.That(!w.To.After(ada.seesTombstones()[0].DeletedAt), "it is %+v", w)
			s.Refused(refusal(selected.Recovery.GetWindow(ctx, made.ID)), "DATABASE_NOT_FOUND")
			s.Refused(refusal(s.Customer("pro").Recovery.GetWindow(ctx, made.ID)), "DATABASE_NOT_FOUND")
			if s.Clock != nil {
				s.OK(s.Clock.Advance(7 * 24 * time.Hour))
				s.Eventually("it is purged", func() bool { return len(ada.seesTombstones()) == 0 })
				s.Refused(refusal(ada.Recovery.GetWindow(ctx, made.ID)), "DATABASE_NOT_FOUND")
			}
		}},
	{Name: "without the agent nobody is told what can be had back", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.losesAgent()
		s.Refused(refusal(ada.Recovery.GetWindow(ctx, made.ID)), "AGENT_ERROR")
	}},
	{Name: "an agent that is too old says nothing of moments", Needs: []Ability{AgesAgents}, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.OldAgent(true)
		s.Refused(refusal(ada.Recovery.GetWindow(ctx, made.ID)), "AGENT_ROUTE_UNAVAILABLE")
		s.OldAgent(false)
	}},
}

// hasWindow waits until something of a database can be had back, and returns what.
func (s *Stage) hasWindow(c *Customer, of Created) (w wire.RecoveryWindow) {
	s.Helper()
	s.Eventually("something can be had back", func() bool {
		w = must(c.Recovery.GetWindow(ctx, of.ID))(s)
		return w.From != nil
	})
	s.That(w.To != nil && !w.To.Before(*w.From), "it is %+v", w)
	return w
}

// losesSegments has the archive lose what is written between two whole seconds from now on, and waits until after that.
func (s *Stage) losesSegments() (from, to time.Time) {
	s.Helper()
	s.Pass(2 * time.Second)
	from = s.now().Truncate(time.Second)
	to = from.Add(2 * time.Second)
	s.OK(s.Archive.Lose(from, to))
	s.Pass(4 * time.Second)
	return from, to
}

// now is the time that the service goes by.
func (s *Stage) now() time.Time {
	if s.Clock != nil {
		return s.Clock.Now()
	}
	return time.Now()
}
