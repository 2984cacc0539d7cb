package pooler

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/acceptance/check"
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

// TestServersOfALogin counts the server connections that a login gets, while a client from before the change keeps one of them.
func TestServersOfALogin(t *testing.T) {
	s := realStack(t)
	p := s.pooler
	for _, step := range []struct {
		what  string
		limit int
		how   passage
	}{
		{"as it was", 2, plainly},
		{"lowered", 1, plainly},
		{"raised", 3, plainly},
		{"lifted", 0, plainly},
		{"set again", 2, plainly},
		{"lifted", 0, byAnotherAgent},
		{"set again", 1, takenUp},
		{"lifted", 0, takenUp},
		{"set again", 2, afterARestart},
		{"lifted", 0, afterARestart},
		{"set again", 2, beforeARestart},
		{"removed", absent, plainly},
		{"made again without", 0, plainly},
		{"still without", 0, byAnotherAgent},
	} {
		before := s.occupy(t, 1, 1)
		var err error
		if p, err = s.apply(t.Context(), p, s.withLimits(0, step.limit, 0), step.how); err != nil {
			t.Fatalf("%s, %s: %v", step.what, step.how, err)
		}
		want := step.limit
		if step.limit == 0 {
			want = asked
		}
		if step.limit != absent {
			left := s.serversOf(t)
			more := s.occupy(t, asked-left, want-left)
			if got := left + len(more); got != want {
				t.Errorf("%s, %s: %d server connections, want %d", step.what, step.how, got, want)
			}
			before = append(before, more...)
		}
		s.vacate(t, before)
	}
}

// asked is how many server connections shop_rt asks for in all. Its entry has more.
const asked = 4

// occupy has n new clients of shop_rt ask for a server connection each, and returns those that got one. Once the wanted ones did,
// the others have a moment left.
func (s *stack) occupy(t *testing.T, n, wanted int) (clients []*session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	enough := func() {
		if len(clients) == wanted {
			time.AfterFunc(300*time.Millisecond, cancel)
		}
	}
	enough()
	var got sync.Mutex
	var asking sync.WaitGroup
	for range n {
		asking.Go(func() {
			client, err := dial(ctx, s.settings, "shop", "shop_rt", "shop_rt-pw")
			if err != nil {
				return // as many as the limit allows get in
			}
			if client.each(ctx, "SELECT 1", func(row) error { return nil }) != nil {
				client.close()
				return
			}
			got.Lock()
			defer got.Unlock()
			clients = append(clients, client)
			enough()
		})
	}
	asking.Wait()
	return clients
}

// vacate ends clients, and the server connections that they leave, which the next client could take whatever the limit.
func (s *stack) vacate(t *testing.T, clients []*session) {
	t.Helper()
	for _, client := range clients {
		client.close()
	}
	check.Eventually(t, "server connections stay", func() bool {
		execute(t, s, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shop_rt'")
		return s.serversOf(t) == 0
	})
}

// serversOf counts the server connections of shop_rt.
func (s *stack) serversOf(t *testing.T) (n int) {
	t.Helper()
	err := s.pooler.each(t.Context(), "SHOW USERS", func(r row) error {
		if r.text("name") == "shop_rt" {
			n = int(r.number("current_connections"))
		}
		return nil
	})
	check.NoError(t, err)
	return n
}
