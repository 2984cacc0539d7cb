package linear

import (
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/acceptance/storetest"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

func TestMain(m *testing.M) {
	sample.Tests(5)
	os.Exit(clustertest.Main(m))
}

// The same on the store that the service has: its locks, constraints and repeated transactions are what the others stand for.

// onPostgres is a setting whose store is one of its own on a real server.
func onPostgres(t *testing.T) setting {
	return setting{store: func() (ports.Store, ports.Admissions) {
		store := storetest.New(t)
		return store, store
	}}
}

const seedsOnPostgres = 3

func TestAdditionalRolesAreLinearizableOnPostgreSQL(t *testing.T) {
	for seed := uint64(1); seed <= seedsOnPostgres; seed++ {
		run(t, seed, onPostgres(t), clients, calls).mustHold(t, seed)
	}
}

func TestLegacyRolesAreLinearizableOnPostgreSQL(t *testing.T) {
	s := onPostgres(t)
	s.legacy = true
	run(t, 1, s, clients, calls).mustHold(t, 1)
}

func TestOneKeyIsOneRoleOnPostgreSQL(t *testing.T)    { oneKeyIsOneRole(t, onPostgres(t)) }
func TestOneKeyHasOneWinnerOnPostgreSQL(t *testing.T) { oneKeyHasOneWinner(t, onPostgres(t)) }
