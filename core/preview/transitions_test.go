package preview

import (
	"testing"

	"github.com/pgherd/pgherd/core/machine/machinetest"
)

func TestTable(t *testing.T) { machinetest.Complete(t, Transitions, Leases, Events) }
