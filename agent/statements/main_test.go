package statements_test

import (
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
)

func TestMain(m *testing.M) { os.Exit(agenttest.Main(m, "TestReadingRests")) }
