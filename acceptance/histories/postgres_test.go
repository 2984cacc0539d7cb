package histories

import (
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/acceptance/storetest"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

func TestMain(m *testing.M) {
	sample.Tests(3)
	os.Exit(clustertest.Main(m))
}

// onPostgres is a setting whose store is one of its own on a real server.
func onPostgres(t *testing.T) setting {
	return setting{store: func() (ports.Store, ports.Admissions) {
		store := storetest.New(t)
		return store, store
	}}
}
