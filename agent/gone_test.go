package agent_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/database"
)

// PgBouncer hears of databases that are gone together, and soon.
func TestDatabasesThatAreGoneAreOneReload(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	s.child(t, "")
	check.NoError(t, s.bouncer.Stop(t.Context()))
	begun := make([]wanted, 5) // creates that could not be completed
	for i := range begun {
		begun[i] = want(database.SingleLogin)
		s.refusedFor(t, "unavailable", begun[i].create())
	}
	check.NoError(t, s.bouncer.Start(t.Context()))
	s.done(t, want(database.SingleLogin).create())

	var states []string // what PgBouncer's files said, one after the other
	has := func(w wanted) bool { return strings.Contains(states[len(states)-1], w.name) }
	look := func() {
		if now := s.poolerEntries(t); len(states) == 0 || states[len(states)-1] != now {
			states = append(states, now)
		}
	}
	look()
	if slices.ContainsFunc(begun, func(w wanted) bool { return !has(w) }) {
		t.Fatal("PgBouncer never had the databases")
	}
	began, slow := time.Now(), 0 // those that did not come one soon after the other
	before := began
	for _, w := range begun {
		this := time.Now()
		s.done(t, closing(w.operation))
		look()
		if time.Since(before) >= pooler.QuietTime/2 { // each begins its pause somewhere in its command
			slow++
		}
		before = this
	}
	check.Eventually(t, "PgBouncer still has databases that are gone", func() bool {
		look()
		return !slices.ContainsFunc(begun, has)
	})
	const away = 1 // the agent tells PgBouncer once when it sees that it is back, which may come between the closings
	if most := 2 + away + slow + int(time.Since(began)/pooler.SoonTime); len(states) > most {
		t.Errorf("%d states of PgBouncer in %s", len(states), time.Since(began))
	}
}

// poolerEntries reads the entries that PgBouncer's main file names.
func (s *stack) poolerEntries(t testing.TB) (text string) {
	t.Helper()
	check.Eventually(t, "PgBouncer's files are replaced all the time", func() bool {
		main := check.Must(os.ReadFile(pooler.ConfigFile(s.config.Pooler.Dir)))(t)
		_, path, _ := strings.Cut(string(main), "%include ")
		path, _, _ = strings.Cut(path, "\n")
		entries, err := os.ReadFile(path)
		text = string(entries)
		return err == nil
	})
	return text
}
