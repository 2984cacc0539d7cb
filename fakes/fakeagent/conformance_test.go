package fakeagent_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	conformance "github.com/pgherd/pgherd/acceptance/conformance/agent"
	corebackup "github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

func TestConformance(t *testing.T) {
	newStand := func(t *testing.T) conformance.Stand {
		agent, s := stand(t)
		return conformance.Stand{Agent: agent, Server: view{s}}
	}
	conformance.Agent(t, 1, newStand)
	conformance.Archive(t, 1, newStand)
	conformance.Heritage(t, estate(t))
	conformance.Moves(t, 1, pair)
	t.Run("forwards", func(t *testing.T) { conformance.Forwards(t, "two.example.org", 6432, pair) })
	for _, never := range conformance.NeverRepeated(commands(t)) {
		t.Errorf("no case has told %s", never)
	}
}

// commands are the types of all commands, as core/command has them.
func commands(t *testing.T) (list []string) {
	t.Helper()
	files, err := filepath.Glob("../../core/command/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of commands (%v)", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range aboutOf.FindAllSubmatch(text, -1) {
			list = append(list, string(found[1]))
		}
	}
	return list
}

var aboutOf = regexp.MustCompile(`(?m)^func \(c (\w+)\) About\(\) About`)

// estate is two servers of one fleet.
func estate(t *testing.T) conformance.Estate {
	t.Helper()
	fleet := fakeagent.New(systemClock{})
	lost, gone := standIn(t, fleet, "33333333-3333-4333-8333-333333333333")
	heir, s := standIn(t, fleet, "44444444-4444-4444-8444-444444444444")
	return conformance.Estate{
		Lost: conformance.Stand{Agent: lost, Server: view{gone}}, Heir: conformance.Stand{Agent: heir, Server: view{s}},
		Lose: func(*testing.T) { gone.SetUnreachable(true) }, Nothing: "elsewhere",
		Rot: func(t *testing.T, db id.DatabaseID, filename corebackup.Filename) {
			t.Helper()
			if !gone.Rot(db, filename) {
				t.Fatal("there is no such backup")
			}
		},
	}
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func (systemClock) Moved() time.Duration { return 0 }

func stand(t *testing.T) (ports.Agent, *fakeagent.Server) {
	t.Helper()
	return standIn(t, fakeagent.New(systemClock{}), "33333333-3333-4333-8333-333333333333")
}

func standIn(t *testing.T, fleet *fakeagent.Fleet, of id.ServerID) (ports.Agent, *fakeagent.Server) {
	t.Helper()
	agent, err := fleet.Agent(server.Server{ID: of})
	if err != nil {
		t.Fatal(err)
	}
	return agent, fleet.Server(of)
}

// view is the fake as the suite looks at it.
type view struct{ *fakeagent.Server }

func (v view) From() netip.Addr { return netip.MustParseAddr("127.0.0.1") }

func (v view) AddForeign(_ *testing.T, name string) { v.Server.AddForeign(name) }

func (v view) AddForeignLogin(name string) { v.Server.AddForeign(name) }

func (v view) LogIn(database, username, password string) (conformance.CustomerSession, error) {
	session, err := v.Connect(v.From(), database, username, password)
	if err != nil {
		return nil, err // not a nil *Session in an interface
	}
	return session, nil
}

// pair is two servers of one fleet, of which the one admits the other.
func pair(t *testing.T) conformance.Pair {
	t.Helper()
	fleet := fakeagent.New(systemClock{})
	source, at := standIn(t, fleet, "33333333-3333-4333-8333-333333333333")
	target, to := standIn(t, fleet, "44444444-4444-4444-8444-444444444444")
	to.SetPublicCA("its certificate")
	return conformance.Pair{
		Source: conformance.Stand{Agent: source, Server: view{at}}, Target: conformance.Stand{Agent: target, Server: view{to}},
		Peer: command.Peer{URL: "https://source.test"}, Back: command.Peer{URL: "https://target.test"},
	}
}
