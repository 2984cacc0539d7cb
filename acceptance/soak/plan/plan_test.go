package plan

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// sized is a plan of any seed.
func sized(t *rapid.T) Plan {
	return Make(rapid.Uint64().Draw(t, "seed"), Small)
}

func TestASeedMakesOnePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := sized(t)
		if again := Make(p.Seed, Small); !reflect.DeepEqual(p, again) {
			t.Fatal("the same seed makes another plan")
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var read Plan
		if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(p, read) {
			t.Fatalf("a plan that was written down is read as another one: %v", err)
		}
	})
}

// What an action is done to was made before, by the same account, and is one of what the capability is for.
func TestActionsAreDoneToWhatWasMade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		made := map[int]*Action{}
		for _, s := range sized(t).Steps {
			if s.Action == nil {
				continue
			}
			made[s.Number] = s.Action
			c := Of(s.Action.Do)
			if _, has := c.Ways[s.Action.Way]; !has {
				t.Fatalf("%s is not done by %s", c.Do, s.Action.Way)
			}
			if len(c.On) == 0 {
				continue
			}
			maker := made[s.Action.On]
			if maker == nil || maker.Account != s.Action.Account || !slices.Contains(c.On, Of(maker.Do).Makes) {
				t.Fatalf("step %d, %s, is done to what %v made", s.Number, s, maker)
			}
		}
	})
}

// Rounds follow each other, each account begins with a database, and nothing goes wrong before that.
func TestAPlanBeginsWell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := sized(t)
		actions, round := 0, 0
		for n, s := range p.Steps {
			if s.Number != n+1 || s.Round < round {
				t.Fatalf("step %d of round %d is number %d", n+1, s.Round, s.Number)
			}
			round = s.Round
			if s.Action != nil {
				actions++
			}
			begins := n < 2*Small.Accounts
			if begins && (s.Action == nil || s.Action.Account != n/2) {
				t.Fatalf("step %d is %s", s.Number, s)
			}
		}
		if actions != Small.Actions || p.Rounds() != Small.Rounds {
			t.Fatalf("%d actions in %d rounds", actions, p.Rounds())
		}
	})
}

// A hundred seeds do everything and have everything go wrong: no weight is so small that something is never tried.
func TestSeedsTryEverything(t *testing.T) {
	tried := map[string]bool{}
	for seed := range uint64(100) {
		for _, s := range Make(seed, Whole).Steps {
			if d := s.Disturbance; d != nil {
				tried[string(d.Kind)+" "+string(d.Part)+" "+string(d.Other)] = true
				continue
			}
			tried[string(s.Action.Do)+" by "+string(s.Action.Way)] = true
		}
	}
	for _, c := range Catalog {
		for way := range c.Ways {
			if what := string(c.Do) + " by " + string(way); !tried[what] {
				t.Errorf("no plan has: %s", what)
			}
		}
	}
	for _, p := range Processes {
		for _, kind := range []Kind{Kill, Stop} {
			if !tried[string(kind)+" "+string(p)+" "] {
				t.Errorf("no plan has: %s %s", kind, p)
			}
		}
	}
	for _, l := range Links {
		if !tried[string(Cut)+" "+string(l[0])+" "+string(l[1])] {
			t.Errorf("no plan cuts %s off %s", l[0], l[1])
		}
	}
}

// Every process is on a machine, and speaks over a link that can be cut.
func TestEveryProcessHasItsMachine(t *testing.T) {
	for _, p := range Processes {
		linked := slices.ContainsFunc(Links, func(l [2]Part) bool { return slices.Contains(l[:], Hosted[p]) })
		if !slices.Contains(Machines, Hosted[p]) || !linked {
			t.Errorf("%s is on %q, whose network cannot be cut", p, Hosted[p])
		}
	}
}
