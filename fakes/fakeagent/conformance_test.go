package fakeagent_test

import (
	"net/netip"
	"testing"
	"time"

	conformance "github.com/pgherd/pgherd/acceptance/conformance/agent"
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
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func (systemClock) Moved() time.Duration { return 0 }

func stand(t *testing.T) (ports.Agent, *fakeagent.Server) {
	t.Helper()
	fleet := fakeagent.New(systemClock{})
	record := server.Server{ID: "33333333-3333-4333-8333-333333333333"}
	agent, err := fleet.Agent(record)
	if err != nil {
		t.Fatal(err)
	}
	return agent, fleet.Server(record.ID)
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
