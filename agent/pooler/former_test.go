package pooler

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// PgBouncer keeps a role that was removed until it restarts.
func TestFormerUsersAreCounted(t *testing.T) {
	s := realStack(t)
	check.NoError(t, s.bouncer.Restart(context.WithoutCancel(t.Context())))
	check.NoError(t, s.enter(t, "shop", "shop", ""))
	without := s.defaultState()
	without.Entries = without.Entries[1:]
	for _, step := range []struct {
		state   State
		restart bool
		want    int64
	}{{s.defaultState(), false, 0}, {without, false, 2}, {s.defaultState(), false, 0}, {without, false, 2}, {without, true, 0}} {
		if step.restart {
			check.NoError(t, s.bouncer.Restart(context.WithoutCancel(t.Context())))
		}
		check.NoError(t, s.pooler.Apply(t.Context(), step.state))
		if got := s.pooler.FormerUsers(); got != step.want {
			t.Errorf("%+v: %d former users", step, got)
		}
	}
}

func TestMemoryIsThatOfOurPgBouncer(t *testing.T) {
	s := realStack(t)
	if m, known := s.pooler.Memory(t.Context()); !known || min(m.Resident, m.Private) < 1<<20 || max(m.Resident, m.Private) > 1<<30 {
		t.Errorf("%d bytes, known: %v", m, known)
	}
	elsewhere := s.settings
	elsewhere.Dir = t.TempDir()
	other := NewConsole(elsewhere)
	defer other.Close()
	if _, known := other.Memory(t.Context()); known {
		t.Error("a process that was started with another file passes for ours")
	}
}
