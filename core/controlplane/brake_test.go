package controlplane_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/ports"
)

// unheld are the rounds that nothing holds. Whoever adds one has a reason: it goes by no stored time, or makes again what it
// deletes. Of every other round TestAWrongClock shows that it waits.
var unheld = map[string]brake.Work{
	"rate buckets": brake.Harmless, "keyring": brake.Harmless, "sizes of databases": brake.Harmless,
	"lost generations": brake.Harmless, "settings": brake.Harmless, "allowlists": brake.Harmless,
	"daily backups": brake.Schedules, "usage of databases": brake.Schedules, "operations of servers": brake.Harmless,
	"drills": brake.Schedules, "forwards": brake.Harmless, "drains": brake.Schedules,
	"forwards of servers that are away": brake.Harmless,
}

func TestWhichRoundsAreHeld(t *testing.T) {
	works := newWorld(t).Rounds.Works()
	maps.DeleteFunc(works, func(_ string, w brake.Work) bool { return w == brake.Destroys })
	if !maps.Equal(works, unheld) {
		t.Errorf("not held as what destroys is: %v", works)
	}
}

// journal remembers which rounds were done and which were held, and what the brake told.
type journal struct{ done, held, told []string }

// Log implements ports.Journal.
func (j *journal) Log(_ context.Context, e ports.JournalEvent) {
	switch e.What {
	case "round.done":
		j.done = append(j.done, e.Kind)
	case "round.held":
		j.held = append(j.held, e.Kind)
	case "brake.on", "brake.off":
		j.told = append(j.told, e.What+" "+e.Kind)
	}
}

// On a host whose clock is wrong, nothing is done that goes by time, and the host claims no work; all other hosts go on. Once its
// clock is right, it goes on too.
func TestAWrongClock(t *testing.T) {
	for what, by := range map[string]time.Duration{
		"a month ahead": 31 * 24 * time.Hour, "a month behind": -31 * 24 * time.Hour, "a little ahead": 2 * time.Minute,
	} {
		w := newWorld(t)
		r, _ := w.started()
		clock, log := &skewed{w.clock, by}, &journal{}
		w.ports.Clock, w.ports.Journal = clock, log
		wrong := w.process(quick())
		var held brake.Held
		if err := wrong.Rounds.Once(w.ctx); !errors.As(err, &held) {
			t.Errorf("%s: %v", what, err)
		}
		var want []string
		for name, work := range wrong.Rounds.Works() {
			if work != brake.Harmless {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		slices.Sort(log.held)
		equal(t, what, strings.Join(log.held, ", "), strings.Join(want, ", "))
		equal(t, what+": an operation is claimed", must(wrong.Work.RunNext(w.ctx))(t), false)
		equal(t, what+": told", wrong.Brake.On(brake.Clock) && slices.Contains(log.told, "brake.on clock"), true)

		w.work(w.ControlPlane) // another host
		equal(t, what+": backups", len(w.backups(r)), 1)

		clock.by = 0
		ok(t, wrong.Rounds.Once(w.ctx))
		equal(t, what+": told afterwards", log.told[len(log.told)-1], "brake.off clock")
		must(w.Backups.Start(w.ctx, r))(t)
		equal(t, what+": an operation is claimed afterwards", must(wrong.Work.RunNext(w.ctx))(t), true)
	}
}

// A clock that jumps at any moment of a round deletes nothing.
func TestAClockThatJumps(t *testing.T) {
	w := newWorld(t)
	r, _ := w.started()
	w.work(w.ControlPlane)
	must(w.Backups.Start(w.ctx, r))(t)
	w.work(w.ControlPlane)
	jumps := &jumping{Clock: w.clock}
	w.ports.Clock = jumps
	host := w.process(quick())
	for in := 1; ; in++ {
		jumps.in = in
		_ = host.Rounds.Once(w.ctx) // it may be held
		equal(t, "backups", len(w.backups(r)), 2)
		if jumps.in > 0 { // a round reads the clock less often
			return
		}
	}
}

// jumping is a clock that is wrong from the reading on that in counts.
type jumping struct {
	ports.Clock
	in int
}

// Now implements ports.Clock.
func (c *jumping) Now() time.Time {
	if c.in--; c.in > 0 {
		return c.Clock.Now()
	}
	return c.Clock.Now().Add(400 * 24 * time.Hour)
}
