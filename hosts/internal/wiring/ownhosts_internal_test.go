package wiring

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/server"
)

// A customer knows the public host of a server, and its agent may listen there too.
func TestWhereAgentsCanBeReached(t *testing.T) {
	got := hostsOf([]server.Server{
		{AgentURL: "https://agent.internal:8090", PublicHost: "db1.example.com"},
		{AgentURL: "https://[2001:db8::1]:8090", PublicHost: "192.0.2.1"},
	})
	if want := []string{"agent.internal", "db1.example.com", "2001:db8::1", "192.0.2.1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
