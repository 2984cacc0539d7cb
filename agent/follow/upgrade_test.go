//go:build versions

package follow_test

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// A database goes to each newer PostgreSQL and back while customers write, and loses nothing. What it holds is the same all the
// way.
func TestUpgradesAndTheirWaysBack(t *testing.T) {
	for _, part := range []toolchain.Part{toolchain.Server17, toolchain.Server18} {
		t.Run(string(part), func(t *testing.T) {
			t.Parallel()
			older := agenttest.Logical(t)
			newer := agenttest.LogicalOn(t, check.Must(toolchain.FindFetched(part))(t))
			older.Start(t)
			newer.Start(t)
			up := begun(t, older, newer, append(varied, makesEntries)...)
			want := older.InDatabase(t, up.w, contents)
			w := up.writes(t)
			up.wholly(t)
			w.at.Store(newer)
			up.wants(t, newer, want)

			back := &move{
				source: newer, target: older, w: up.w, operation: agenttest.NewUUID(), epoch: 1, token: strings.Repeat("b", 40),
			}
			back.wholly(t)
			w.at.Store(older)
			back.wants(t, older, want)
			w.end(t, nil, older)
			older.NoOrphans(t)
			newer.NoOrphans(t)
		})
	}
}

// Newer versions keep in their catalogs what voids a rehearsal as 16 does.
func TestWhatVoidsARehearsalOfNewerVersions(t *testing.T) {
	for _, part := range []toolchain.Part{toolchain.Server17, toolchain.Server18} {
		t.Run(string(part), func(t *testing.T) {
			t.Parallel()
			s := agenttest.LogicalOn(t, check.Must(toolchain.FindFetched(part))(t))
			s.Start(t)
			voids(t, s, s.Made(t, database.Managed))
		})
	}
}

// wholly is a move from its beginning to its end.
func (m *move) wholly(t *testing.T) {
	t.Helper()
	m.loads(t)
	m.follows(t)
	m.passes(t)
	tell(t, m, m.source, m.departing())
	m.source.NoTrace(t, m.w)
	nothingKept(t, m.source)
	nothingKept(t, m.target)
}

// wants demands what the database holds.
func (m *move) wants(t *testing.T, at *agenttest.Stack, want string) {
	t.Helper()
	if got := at.InDatabase(t, m.w, contents); got != want {
		t.Errorf("it holds %s, want %s", got, want)
	}
}
