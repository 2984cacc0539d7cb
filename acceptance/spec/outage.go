package spec

import (
	"errors"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

var losingParts = []Scenario{
	{Name: "without PgBouncer a creation and query timeouts go on when it is back, and a stop is carried out", Alone: true,
		Needs: []Ability{HasOutages}, Play: func(s *Stage) {
			ada, made := s.Owner()
			timed := ada.Creates("timed")
			ask := NewDatabase{Name: s.Name("later"), DisplayName: "Later", IdempotencyKey: "deploy-1"}
			s.loses(s.Outages.Pooler)
			s.Refused(refusal(ada.CreateDatabase(ask)), "AGENT_ERROR")
			s.Refused(refusal(ada.SetLifecycle(made.ID, "stop")), "AGENT_ERROR")
			ada.Sees(made.ID)
			s.beginsTimeouts(ada, timed.ID, "short")

			s.OK(s.Outages.Pooler(false))
			s.Connects(s.createsInTheEnd(ada, ask).Login())
			s.Eventually("the database is stopped", func() bool { return ada.Sees(made.ID).Status == "stopped" })
			s.ShutOut(made.Login())
			s.Eventually("the query timeouts are in effect", func() bool {
				return ada.SeesTimeouts(timed.ID).Operation.Status == operation.Succeeded
			})
			ada.Sets(timed.ID, "stop", "stopped")
			s.That(len(ada.SeesAll()) == 3, "ada sees %v", ada.SeesAll())
		}},
	{Name: "without PostgreSQL on the server nothing is lost, and creation goes on when it is back", Alone: true,
		Needs: []Ability{HasOutages}, Play: func(s *Stage) {
			ada, made := s.Owner()
			s.OK(s.Connects(made.Login()).Write("kept"))
			ask := NewDatabase{Name: s.Name("later"), DisplayName: "Later", IdempotencyKey: "deploy-1"}
			s.loses(s.Outages.Server)
			s.Refused(refusal(ada.CreateDatabase(ask)), "AGENT_ERROR")
			s.Refused(refusal(ada.Backups.Start(ctx, made.ID)), "AGENT_ERROR")
			ada.Sees(made.ID)

			s.OK(s.Outages.Server(false))
			s.Connects(s.createsInTheEnd(ada, ask).Login())
			s.Connects(made.Login())
			s.holds(ada.Downloads(made.ID, s.backsUpInTheEnd(ada, made.ID)), "kept")
		}},
	{Name: "without the metadata database the API says so and no more, databases work on, and it heals by itself",
		Alone: true, Needs: []Ability{HasOutages}, Play: func(s *Stage) {
			ada, made := s.Owner()
			s.loses(s.Outages.Metadata)
			for _, host := range s.Hosts {
				r := s.Refused(refusal(host(ada.Key.Text).Databases.Get(ctx, made.ID)), "SERVER_BUSY")
				for _, inner := range []string{"pq", "sql", "connect", "127.0.0.1", "metadata", "refused"} {
					s.That(!strings.Contains(r.Message, inner), "the error tells of the inside: %s", r.Message)
				}
			}
			s.Connects(made.Login())
			s.OK(s.Outages.Metadata(false))
			s.Eventually("every host answers again", func() bool {
				return !slices.ContainsFunc(s.Hosts, func(host func(string) Client) bool {
					_, err := host(ada.Key.Text).Databases.Get(ctx, made.ID)
					return err != nil
				})
			})
			ada.FinishesBackup(made.ID)
		}},
}

// loses takes a part of the service away until the story brings it back, or ends.
func (s *Stage) loses(part func(gone bool) error) {
	s.Helper()
	s.OK(part(true))
	s.finally(func() error { return part(false) })
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
func (s *Stage) backsUpInTheEnd(c *Customer, of id.DatabaseID) (file backup.Filename) {
	s.Helper()
	s.Eventually("a backup is started", func() bool {
		started, err := c.Backups.Start(ctx, of)
		if err != nil {
			s.mayPass(err)
			return false
		}
		file = s.fileOf(c.Follows(started.Operation))
		return true
	})
	return file
}

// mayPass fails the story at an error that a client is not told to repeat.
func (s *Stage) mayPass(err error) {
	s.Helper()
	if r := (*apiclient.Error)(nil); !errors.As(err, &r) || r.Code != "AGENT_ERROR" && r.Code != "SERVER_BUSY" {
		s.Fatalf("got %v; want AGENT_ERROR or SERVER_BUSY", err)
	}
}
