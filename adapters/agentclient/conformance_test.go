package agentclient_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	conformance "github.com/pgherd/pgherd/acceptance/conformance/agent"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// The suite of the port over HTTPS: what it asks of an agent must survive the wire, refusals and backup files included.
func TestConformance(t *testing.T) {
	newStand := func(t *testing.T) conformance.Stand {
		fleet := fakeagent.New(systemClock{})
		behind := check.Must(fleet.Agent(server.Server{ID: "behind"}))(t)
		w := newWire(t, relay(behind).ServeHTTP)
		return conformance.Stand{Agent: agentOf(t, w.server(t)), Server: view{fleet.Server("behind")}}
	}
	conformance.Agent(t, 1, newStand)
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// view is the fake behind the wire as the suite looks at it.
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
