package spec

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

var losingParts = []Scenario{
	{Name: "without PgBouncer a creation goes on when it is back, and a stop is carried out", Alone: true,
		Needs: []Ability{HasOutages}, Play: func(s *Stage) {
			ada := s.Customer("pro")
			made := ada.Creates("orders")
			ask := NewDatabase{Name: s.Name("later"), DisplayName: "Later", IdempotencyKey: "deploy-1"}
			s.loses(s.Outages.Pooler)
			_, err := ada.CreateDatabase(ask)
			s.Refused(err, "AGENT_ERROR")
			_, err = ada.SetLifecycle(made.ID, "stop")
			s.Refused(err, "AGENT_ERROR")
			ada.Sees(made.ID)

			s.OK(s.Outages.Pooler(false))
			s.Connects(s.createsInTheEnd(ada, ask).Login())
			s.Eventually("the database is stopped", func() bool { return ada.Sees(made.ID).Status == "stopped" })
			s.ShutOut(made.Login())
			s.That(len(ada.SeesAll()) == 2, "ada sees %v", ada.SeesAll())
		}},
	{Name: "without PostgreSQL on the server nothing is lost, and creation goes on when it is back", Alone: true,
		Needs: []Ability{HasOutages}, Play: func(s *Stage) {
			ada := s.Customer("pro")
			made := ada.Creates("orders")
			s.OK(s.Connects(made.Login()).Write("kept"))
			ask := NewDatabase{Name: s.Name("later"), DisplayName: "Later", IdempotencyKey: "deploy-1"}
			s.loses(s.Outages.Server)
			_, err := ada.CreateDatabase(ask)
			s.Refused(err, "AGENT_ERROR")
			_, err = ada.StartBackup(made.ID)
			s.Refused(err, "AGENT_ERROR")
			ada.Sees(made.ID)

			s.OK(s.Outages.Server(false))
			s.Connects(s.createsInTheEnd(ada, ask).Login())
			s.Connects(made.Login())
			s.holds(ada.Downloads(made.ID, s.backsUpInTheEnd(ada, made.ID)), "kept")
		}},
	{Name: "without the metadata database the API says so and no more, databases work on, and it heals by itself",
		Alone: true, Needs: []Ability{HasOutages}, Play: func(s *Stage) {
			ada := s.Customer("pro")
			made := ada.Creates("orders")
			s.loses(s.Outages.Metadata)
			for _, host := range s.Hosts {
				_, err := host(ada.Key.Text).Database(made.ID)
				r := s.Refused(err, "INTERNAL_ERROR")
				for _, inner := range []string{"pq", "sql", "connect", "127.0.0.1", "metadata", "refused"} {
					s.That(!strings.Contains(r.Message, inner), "the error tells of the inside: %s", r.Message)
				}
			}
			s.Connects(made.Login())
			s.OK(s.Outages.Metadata(false))
			s.Eventually("every host answers again", func() bool {
				return !slices.ContainsFunc(s.Hosts, func(host func(string) API) bool {
					_, err := host(ada.Key.Text).Database(made.ID)
					return err != nil
				})
			})
			ada.FinishesBackup(made.ID)
		}},
	{Name: "a restart of the metadata database under load loses nothing and doubles nothing", Alone: true,
		Needs: []Ability{HasOutages}, Play: func(s *Stage) {
			ada := s.Customer("business")
			var asks []NewDatabase
			for i := range 12 {
				asks = append(asks, NewDatabase{Name: s.Name("load"), DisplayName: "L", IdempotencyKey: fmt.Sprint("load-", i)})
			}
			s.loadWhile(ada, asks, func() {
				s.loses(s.Outages.Metadata)
				s.OK(s.Outages.Metadata(false))
			})
			for _, ask := range asks {
				s.Connects(s.createsInTheEnd(ada, ask).Login())
			}
			s.That(len(ada.SeesAll()) == len(asks), "%d databases exist; want %d", len(ada.SeesAll()), len(asks))
			s.OK(s.Operator.SetQuota(ada.Account, len(asks)+1))
			ada.Creates("one-more")
			_, err := ada.CreateDatabase(NewDatabase{Name: s.Name("too-many"), DisplayName: "D"})
			s.Refused(err, "PLAN_LIMIT")
		}},
}

// loses takes a part of the service away until the story brings it back, or ends.
func (s *Stage) loses(part func(gone bool) error) {
	s.Helper()
	s.OK(part(true))
	s.Cleanup(func() {
		if err := part(false); err != nil {
			s.Error(err)
		}
	})
}

// createsInTheEnd repeats a creation, with its key, until it goes through.
func (s *Stage) createsInTheEnd(c *Customer, ask NewDatabase) (made Created) {
	s.Helper()
	s.Eventually(ask.Name+" is made", func() bool {
		var err error
		made, err = c.CreateDatabase(ask)
		if err != nil {
			s.mayPass(err)
		}
		return err == nil
	})
	return made
}

// backsUpInTheEnd starts a backup as soon as that is possible, and returns its file name.
func (s *Stage) backsUpInTheEnd(c *Customer, id string) (file string) {
	s.Helper()
	s.Eventually("a backup is started", func() bool {
		o, err := c.StartBackup(id)
		if err != nil {
			s.mayPass(err)
			return false
		}
		done := c.Follows(o)
		s.That(done.Status == "succeeded", "it ended as %s: %+v", done.Status, done.Error)
		file = s.fileOf(c, id, done.ID)
		return true
	})
	return file
}

// mayPass fails the story at an error that a client is not told to repeat.
func (s *Stage) mayPass(err error) {
	s.Helper()
	if r := (*Refusal)(nil); !asRefusal(err, &r) || r.Code != "AGENT_ERROR" && r.Code != "INTERNAL_ERROR" {
		s.Fatalf("got %v; want AGENT_ERROR or INTERNAL_ERROR", err)
	}
}

// loadWhile sends all requests, on all hosts, while something happens. What comes of them is looked at later.
func (s *Stage) loadWhile(c *Customer, asks []NewDatabase, happens func()) {
	s.Helper()
	var all sync.WaitGroup
	errs := make([]error, len(asks))
	for i, ask := range asks {
		host := s.Hosts[i%len(s.Hosts)](c.Key.Text)
		all.Go(func() { _, errs[i] = host.CreateDatabase(ask) })
	}
	happens()
	all.Wait()
	for _, err := range errs {
		if err != nil {
			s.mayPass(err)
		}
	}
}
