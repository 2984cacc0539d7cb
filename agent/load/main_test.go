package load_test

import (
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/backuptest"
)

func TestMain(m *testing.M) {
	os.Exit(backuptest.Main(m, "TestWhatIsShownOfAStatement", "TestNotNullAtOlderServers"))
}
