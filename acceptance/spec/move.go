package spec

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// Mover is the operator where databases move to another server.
type Mover interface {
	// Servers are the first database server and the second, which runs from the first call on, and takes no databases until it is
	// enabled.
	Servers() (first, second id.ServerID, err error)
	// EnableServer has a server take databases, or no more.
	EnableServer(of id.ServerID, on bool) error
	// Move moves a database to a server, and returns when that is done.
	Move(of id.DatabaseID, to id.ServerID, how Moving) error
	// Movable lists what is in the way of moving a database while it serves, in the words that the operator reads.
	Movable(of id.DatabaseID) ([]string, error)
	// Drain moves all databases of a server to others, closed where they cannot be followed, and returns when that is done.
	Drain(of id.ServerID) error
	// Forwards are the servers that send on who still comes for a database. EndForwards ends that.
	Forwards(of id.DatabaseID) ([]id.ServerID, error)
	EndForwards(of id.DatabaseID) error
}

// Moving says how a database moves.
type Moving struct {
	Closed bool
	// Forward is for how long the server that is left sends on who still comes.
	Forward time.Duration
}

var moving = []Scenario{
	{Name: "a database moves while it serves, with its logins, allowlist and backups, and back", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		_, reports := ada.AddsLogin(made, "Reports", "read_only")
		ada.Allows(made.ID, Home.String())
		logins := []Login{made.Login(), ada.RevealsLogin(made, "runtime").LogIn(), reports}
		held := s.writesMovable(made, "before")
		file := ada.FinishesBackup(made.ID)
		first, second := s.servers()

		s.OK(s.Operator.Move(made.ID, second, Moving{}))
		s.That(held.Ended(), "a client is still in where the database was")
		there := ada.Sees(made.ID)
		s.That(addressOf(there) != addressOf(made.Database) && there.Status == "active", "it is now %+v", there)
		for _, l := range logins {
			s.ShutOut(l)
			s.Connects(at(there, l))
		}
		away := at(there, made.Login())
		away.From = Away
		s.ShutOut(away)
		s.OK(s.Connects(at(there, made.Login())).Write("after"))
		s.holds(ada.Downloads(made.ID, file), "before")
		s.holds(ada.Downloads(made.ID, ada.FinishesBackup(made.ID)), "before", "after")
		moves := slices.DeleteFunc(ada.ListsOperations(made.ID), func(o wire.Operation) bool { return o.Type != "move" })
		s.That(len(moves) == 1 && moves[0].Status == "succeeded", "its owner sees %+v", moves)

		s.OK(s.Operator.Move(made.ID, first, Moving{}))
		s.That(addressOf(ada.Sees(made.ID)) == addressOf(made.Database), "it is now %+v", ada.Sees(made.ID))
		for _, l := range logins {
			s.Connects(l)
			s.ShutOut(at(there, l))
		}
		s.That(len(ada.ListsBackups(made.ID)) == 2, "it has the backups %+v", ada.ListsBackups(made.ID))
		s.holds(ada.Downloads(made.ID, ada.FinishesBackup(made.ID)), "before", "after")
	}},
	{Name: "what cannot be followed is named, and moves closed", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.writesMovable(made, "kept")
		ways := must(s.Operator.Movable(made.ID))(s)
		s.That(len(ways) == 0, "in its way is %q", ways)
		s.OK(s.OnServer.Keyless(made))
		ways = must(s.Operator.Movable(made.ID))(s)
		s.That(len(ways) == 1 && strings.HasSuffix(ways[0], " in public.keyless"), "in its way is %q", ways)
		_, second := s.servers()

		err := s.Operator.Move(made.ID, second, Moving{})
		s.That(err != nil && strings.Contains(err.Error(), ways[0]), "the move ends with %v", err)
		s.Connects(made.Login())
		s.OK(s.Operator.Move(made.ID, second, Moving{Closed: true}))
		s.ShutOut(made.Login())
		s.Connects(at(ada.Sees(made.ID), made.Login()))
		s.holds(ada.Downloads(made.ID, ada.FinishesBackup(made.ID)), "kept")
	}},
	{Name: "a server is drained once there is room for all that it has", Alone: true, Play: func(s *Stage) {
		ada := s.Customer("pro")
		list := []Created{ada.Creates("one"), ada.Creates("two")}
		first, second := s.servers()
		for _, made := range list {
			s.writesMovable(made, made.Name)
			s.OK(s.Operator.Move(made.ID, second, Moving{}))
		}
		enable := func() error { return s.Operator.EnableServer(first, true) }
		s.finally(enable)
		s.OK(s.Operator.EnableServer(first, false))

		err := s.Operator.Drain(second)
		s.That(err != nil && strings.Contains(err.Error(), "go nowhere"), "the drain ends with %v", err)
		for _, made := range list {
			s.Connects(at(ada.Sees(made.ID), made.Login()))
			s.ShutOut(made.Login())
		}
		s.OK(enable())
		s.OK(s.Operator.Drain(second))
		for _, made := range list {
			s.Connects(made.Login())
			s.holds(ada.Downloads(made.ID, ada.FinishesBackup(made.ID)), made.Name)
		}
	}},
	{Name: "who still comes to the old address is sent on, until an operator ends that", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.writesMovable(made, "before")
		first, second := s.servers()
		s.OK(s.Operator.Move(made.ID, second, Moving{Forward: time.Hour}))
		s.Eventually("who comes to the old address gets in", func() bool { return s.getsIn(made.Login()) })
		s.OK(s.Connects(made.Login()).Write("through"))
		wrong := made.Login()
		wrong.Password += "x"
		s.ShutOut(wrong)
		on := must(s.Operator.Forwards(made.ID))(s)
		s.That(slices.Equal(on, []id.ServerID{first}), "%v send on", on)

		s.OK(s.Operator.EndForwards(made.ID))
		s.Eventually("nobody is sent on", func() bool { return !s.getsIn(made.Login()) })
		s.Eventually("no server is said to send on", func() bool { return len(must(s.Operator.Forwards(made.ID))(s)) == 0 })
		s.Connects(at(ada.Sees(made.ID), made.Login()))
		s.holds(ada.Downloads(made.ID, ada.FinishesBackup(made.ID)), "before", "through")
	}},
}

// servers are both database servers, of which the second takes databases as well until the story ends.
func (s *Stage) servers() (first, second id.ServerID) {
	s.Helper()
	first, second, err := s.Operator.Servers()
	s.OK(err)
	s.finally(func() error { return s.Operator.EnableServer(second, false) })
	s.OK(s.Operator.EnableServer(second, true))
	return first, second
}

// writesMovable writes notes that a move can follow, and stays in the database.
func (s *Stage) writesMovable(in Created, notes ...string) Session {
	s.Helper()
	held := s.Connects(in.Login())
	s.OK(held.Write(notes...))
	s.OK(s.OnServer.Identify(in))
	return held
}

// addressOf is where the API says that a database is.
func addressOf(d wire.Database) string { return net.JoinHostPort(d.Host, strconv.Itoa(d.Port)) }

// at is a log-in there.
func at(d wire.Database, l Login) Login {
	l.At = addressOf(d)
	return l
}
