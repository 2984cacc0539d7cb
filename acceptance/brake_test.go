package acceptance_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/driver"
	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/ports"
)

// ahead is the clock of a machine on which it is wrong.
type ahead struct {
	ports.Clock
	by time.Duration
}

// Now implements ports.Clock.
func (c *ahead) Now() time.Time { return c.Clock.Now().Add(c.by) }

// A batch host whose clock is a year ahead joins the stack: whatever its rounds find, they erase nothing, and it takes up no
// work.
func TestABatchHostWhoseClockIsWrong(t *testing.T) {
	s := &spec.Stage{TB: t, World: driver.Stack(t)}
	ada := s.Customer("pro")
	made := ada.Creates("orders")
	ada.FinishesBackup(made.ID)
	ada.FinishesBackup(made.ID)

	metadataURL, keyringFile := driver.StackFiles()
	store, err := postgres.Open(t.Context(), postgres.Config{URL: metadataURL})
	s.OK(err)
	defer func() { s.OK(store.Close()) }()
	box, err := secretbox.Load(keyringFile)
	s.OK(err)
	clock := &ahead{system.NewClock(), 365 * 24 * time.Hour}
	host, err := controlplane.New(controlplane.Ports{
		Store: store, Admissions: store, Secrets: box, Ring: box, Fleet: agentclient.New(box, agentclient.Options{}),
		Clock: clock, Entropy: system.Entropy{},
	}, controlplane.Config{})
	s.OK(err)
	var held brake.Held
	if err := host.Rounds.Once(t.Context()); !errors.As(err, &held) {
		t.Errorf("its rounds: %v", err)
	}
	if worked, err := host.Work.RunNext(t.Context()); worked || err != nil {
		t.Errorf("it works on an operation: %t, %v", worked, err)
	}
	s.That(len(ada.ListsBackups(made.ID)) == 2, "its rounds left %+v", ada.ListsBackups(made.ID))
	s.That(host.Brake.On(brake.Clock), "the brake is not on")
}
