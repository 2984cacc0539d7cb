package driver

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/fakes/memstore"
)

// Core makes a world of the use cases alone, on fakes, as a program that embeds them would call them. Its store runs every
// update twice, which reveals effects outside a transaction.
func Core(t testing.TB) spec.World {
	t.Helper()
	s := newService(t, memstore.NewRerunning())
	w := s.world()
	for _, cp := range s.hosts {
		w.Hosts = append(w.Hosts, hostOf(cp))
	}
	return w
}

func hostOf(cp *controlplane.ControlPlane) func(key string) spec.API {
	return func(key string) spec.API { return direct{cp: cp, key: key} }
}
