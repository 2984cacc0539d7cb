package diskroom_test

import (
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestMain(m *testing.M) {
	if err := sample.Tests(8,
		"TestNoAccountFillsADiskWithCopies", "TestWhoGivesWay", "TestUploadsLeaveHalfOfADisk", "TestNobodyIsPromisedWhatAnotherHas",
		"TestNewest", "TestFourCopiesThatDoNotFitTogether", "TestExtend", "TestDecide", "TestAnAccountsLastingCopiesHaveHalf",
		"TestALastingCopyGrowsWithinTheShare",
	); err != nil {
		panic(err)
	}
	os.Exit(clustertest.Main(m))
}

// world has what the tests of this package do beside.
type world struct{ *backuptest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{backuptest.New(t)}
}
