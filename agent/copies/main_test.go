package copies_test

import (
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/backuptest"
)

func TestMain(m *testing.M) {
	os.Exit(backuptest.Main(m, "TestNotesOfWhatALoadLeavesOut"))
}

// world has what the tests of this package do beside.
type world struct{ *backuptest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{backuptest.New(t)}
}
