package load_test

import (
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestMain(m *testing.M) {
	if err := sample.Tests(8, "TestWhatIsShownOfAStatement", "TestKeptInputsAreInTheCorpus"); err != nil {
		panic(err)
	}
	os.Exit(clustertest.Main(m))
}
