package agenttest

import (
	"testing"

	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// logical are the settings of a server whose databases can be followed, and follow.
var logical = map[string]string{"wal_level": "logical", "max_wal_senders": "10"}

// Logical is a stack of the test's own whose databases can be followed, and follow, without an agent.
func Logical(t testing.TB) *Stack {
	t.Helper()
	return New(t, clustertest.New(t, logical), t.TempDir())
}

// LogicalOn is Logical with the programs of another PostgreSQL.
func LogicalOn(t testing.TB, tools toolchain.Tools) *Stack {
	t.Helper()
	s := New(t, clustertest.NewOn(t, tools, logical), t.TempDir())
	s.Config.PgDump = tools.PgDump
	return s
}
