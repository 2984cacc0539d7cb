package agenttest

import (
	"testing"

	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// Logical is a stack of the test's own whose databases can be followed, and follow, without an agent.
func Logical(t testing.TB) *Stack {
	t.Helper()
	return New(t, clustertest.New(t, map[string]string{"wal_level": "logical", "max_wal_senders": "10"}), t.TempDir())
}
