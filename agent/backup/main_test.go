package backup_test

import (
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/backuptest"
)

func TestMain(m *testing.M) {
	if os.Getenv(crashEnv) != "" {
		os.Exit(runUntilCrash())
	}
	os.Exit(backuptest.Main(m, "TestKilledAtEveryPoint"))
}

// world has what the tests of this package do beside.
type world struct{ *backuptest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{backuptest.New(t)}
}

// newOwnWorld is a world with a cluster of its own, which the test may crash.
func newOwnWorld(t *testing.T) *world {
	t.Helper()
	return &world{backuptest.NewOwn(t)}
}
