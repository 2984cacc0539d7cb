package agent_test

import (
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestMain(m *testing.M) {
	agenttest.Become()
	sample.Tests(16, "TestRealAgent")
	os.Exit(clustertest.Main(m))
}
