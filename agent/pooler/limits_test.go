package pooler

import (
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// passage is how a state comes to be applied.
type passage string

const (
	plainly        passage = "applied"
	byAnotherAgent passage = "applied by an agent that has just started"
	takenUp        passage = "reloaded by an agent that ends then, and applied by the next"
	afterARestart  passage = "applied after PgBouncer has restarted with the files of before"
	beforeARestart passage = "written, and applied after PgBouncer has restarted"
)

var passages = []passage{plainly, byAnotherAgent, takenUp, afterARestart, beforeARestart}

// apply returns the pooler of the agent that is there in the end.
func (s *stack) apply(ctx context.Context, p *Pooler, state State, how passage) (*Pooler, error) {
	var err error
	if how == takenUp || how == beforeARestart {
		err = p.Write(state)
	}
	switch {
	case err != nil:
		return p, err
	case how == takenUp:
		err = p.reload(ctx)
	case how == afterARestart || how == beforeARestart:
		err = s.bouncer.Restart(context.WithoutCancel(ctx))
	}
	if how == takenUp || how == byAnotherAgent {
		p.Close()
		p = New(s.settings, s.owner)
	}
	if err != nil {
		return p, err
	}
	return p, p.Apply(ctx, state)
}

const absent = -1 // the state does not have the login

// withLimits is the default state with other limits.
func (s *stack) withLimits(shop, runtime, blog int) State {
	state := s.defaultState()
	for i, logins := range [][]Login{{{"shop", shop}, {"shop_rt", runtime}}, {{"blog", blog}}} {
		state.Entries[i].Logins = nil
		for _, l := range logins {
			if l.MaxConnections != absent {
				state.Entries[i].Logins = append(state.Entries[i].Logins, l)
			}
		}
	}
	return state
}

// TestPgBouncerGoesByTheLimits applies states in a row to one PgBouncer, which forgets nothing but by a restart.
func TestPgBouncerGoesByTheLimits(t *testing.T) {
	s := realStack(t)
	limit := rapid.SampledFrom([]int{absent, 0, 0, 1, 5})
	rapid.Check(t, func(rt *rapid.T) {
		p, err := s.apply(t.Context(), s.pooler, s.withLimits(0, 2, 0), afterARestart)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { p.Close() }()
		for range rapid.IntRange(1, 4).Draw(rt, "states") {
			state := s.withLimits(limit.Draw(rt, "shop"), limit.Draw(rt, "shop_rt"), limit.Draw(rt, "blog"))
			how := rapid.SampledFrom(passages).Draw(rt, "how")
			if p, err = s.apply(t.Context(), p, state, how); err != nil {
				rt.Fatalf("%s: %v", how, err)
			}
			goesBy(t, rt, p, state)
			if err := p.Apply(t.Context(), state); err != nil {
				rt.Fatal(err)
			}
			goesBy(t, rt, p, state)
			if text := contentOf(t, p.desired.files, "users-"); strings.Contains(text, "=0") {
				rt.Fatalf("a limit is lifted again and again: %s", text)
			}
		}
	})
}

func goesBy(t *testing.T, rt *rapid.T, p *Pooler, state State) {
	shown := map[string]int64{}
	err := p.each(t.Context(), "SHOW USERS", func(r row) error {
		shown[r.text("name")] = r.number("max_user_connections")
		return nil
	})
	if err != nil {
		rt.Fatal(err)
	}
	for _, e := range state.Entries {
		for _, l := range e.Logins {
			if shown[l.Name] != int64(l.MaxConnections) {
				rt.Fatalf("PgBouncer goes by %v, the state is %+v", shown, state.Entries)
			}
		}
	}
}
