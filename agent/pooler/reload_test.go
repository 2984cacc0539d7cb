package pooler

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestFilesAreSweptAndPrivate(t *testing.T) {
	s := realStack(t)
	for limit := range 3 {
		state := s.defaultState()
		state.Entries[0].ConnectionCap = 10 + limit
		check.NoError(t, s.pooler.Apply(t.Context(), state))
	}
	found, err := os.ReadDir(s.settings.Dir)
	if err != nil || len(found) != 5 {
		t.Errorf("%d files, want 4 parts and the main file: %v %v", len(found), found, err)
	}
	for _, f := range found {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f.Name(), info.Mode(), err)
		}
	}
}

func TestReloadThatTakesNothingOverIsSeen(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	state := s.defaultState()
	state.Entries[0].ConnectionCap = 40
	files := check.Must(Render(state))(t)
	for name, spoil := range map[string]func(Files) Files{
		"syntax error in a part": func(f Files) Files {
			f.Parts = slices.Clone(f.Parts)
			f.Parts[0].Content = append([]byte("[databases]\nbroken\n"), f.Parts[0].Content...)
			return f
		},
		"HBA file without its canary": func(f Files) Files {
			f.Parts = slices.Clone(f.Parts)
			rules, _, _ := strings.Cut(string(f.Parts[3].Content), "local ")
			f.Parts[3].Content = []byte(rules + "local all all scram-sha-256\n")
			return f
		},
		"missing part": func(f Files) Files { f.Parts = f.Parts[1:]; return f },
		"unknown setting": func(f Files) Files {
			f.Main.Content = []byte("[pgbouncer]\nno_such = 1\n" + string(f.Main.Content))
			return f
		},
		"cut off before its mark": func(f Files) Files { f.Main.Content = f.Main.Content[:len(f.Main.Content)-30]; return f },
	} {
		spoilt := spoil(files)
		_ = os.Remove(filepath.Join(s.settings.Dir, files.Parts[0].Name))
		check.NoError(t, writeFiles(s.settings.Dir, spoilt, s.owner))
		// Since 1.25 PgBouncer says itself what it could not read; a wrong HBA file it never tells.
		if err := s.pooler.reload(ctx); err != nil && (!errors.Is(err, ErrNotTakenOver) || errors.Is(err, ErrUnreachable)) {
			t.Errorf("%s: RELOAD: %v", name, err)
		}
		if _, err := s.pooler.readBack(ctx, state, files); !errors.Is(err, ErrNotTakenOver) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.pooler.takeOver(ctx, applied{state, files}); !errors.Is(err, ErrNotTakenOver) {
			t.Errorf("%s: taken over: %v", name, err)
		}
		check.NoError(t, s.pooler.Apply(ctx, s.defaultState()), name, "no way back")
	}
}

// TestReadBackSeesEachDifference holds that the mark is not the only thing compared.
func TestReadBackSeesEachDifference(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	files := check.Must(Render(s.defaultState()))(t)
	check.Must(s.pooler.readBack(ctx, s.defaultState(), files))(t)
	for name, change := range map[string]func(*State, *Files){
		"cap":            func(st *State, _ *Files) { st.Entries[0].ConnectionCap = 9 },
		"entry missing":  func(st *State, _ *Files) { st.Entries = append(st.Entries, Entry{Database: "more"}) },
		"entry too many": func(st *State, _ *Files) { st.Entries = st.Entries[:1] },
		"login limit":    func(st *State, _ *Files) { st.Entries[0].Logins[1].MaxConnections = 3 },
		"login missing":  func(st *State, _ *Files) { st.Entries[1].Logins = append(st.Entries[1].Logins, Login{"more", 1}) },
		"rules":          func(_ *State, f *Files) { f.Canary = "other" },
		"mark":           func(_ *State, f *Files) { f.Mark = "other" },
	} {
		wanted, f := s.defaultState(), files
		change(&wanted, &f)
		_, err := s.pooler.readBack(ctx, wanted, f)
		if !errors.Is(err, ErrNotTakenOver) || errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCallersShareReloads(t *testing.T) {
	s, ctx := realStack(t), t.Context()
	var mu sync.Mutex
	var reads int
	limit := 8
	read := func(context.Context) (State, error) {
		mu.Lock()
		defer mu.Unlock()
		reads++
		state := s.defaultState()
		state.Entries[1].Logins[0].MaxConnections = limit
		return state, nil
	}
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			mu.Lock()
			limit++
			mine := int64(limit)
			mu.Unlock()
			if err := s.pooler.Sync(ctx, read); err != nil {
				t.Error(err)
			}
			if shown := limitOf(t, s, "blog"); shown < mine {
				t.Errorf("limit %d after Sync, committed %d before", shown, mine)
			}
		})
	}
	wg.Wait()
	if reads > 30 {
		t.Errorf("%d reloads for 100 callers", reads)
	}
}

func limitOf(t *testing.T, s *stack, login string) (limit int64) {
	t.Helper()
	err := s.pooler.each(t.Context(), "SHOW USERS", func(r row) error {
		if r.text("name") == login {
			limit = r.number("max_user_connections")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return limit
}

// What nobody waits for is collected.
func TestSyncSoonCollectsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := testSettings()
		settings.Dir, settings.SocketDir = t.TempDir(), t.TempDir()
		var reads atomic.Int64
		var answers atomic.Bool // PostgreSQL
		p := New(settings, nil) // of a PgBouncer that does not answer
		read := func(context.Context) (State, error) {
			reads.Add(1)
			if !answers.Load() {
				return State{}, errors.New("PostgreSQL is down")
			}
			return State{Settings: settings}, nil
		}
		step := func(what string, pause time.Duration, want int64) {
			time.Sleep(pause)
			synctest.Wait()
			if got := reads.Load(); got != want {
				t.Errorf("%s: %d reads, want %d", what, got, want)
			}
		}
		check.NoError(t, p.SyncCollected(t.Context(), read))
		step("the doctor comes, and nothing is collected", 0, 0)
		for range 150 { // which takes longer than SoonTime
			p.SyncSoon(read)
			time.Sleep(SoonTime / 101)
		}
		step("databases go and go", 0, 1)
		step("the state could not be read", SoonTime, 2)
		_ = p.Sync(t.Context(), read)
		step("another change comes meanwhile", 0, 3)
		answers.Store(true)
		_ = p.Sync(t.Context(), read)
		step("and one that is done", 0, 4)
		answers.Store(false)
		p.SyncSoon(read)
		_ = p.SyncCollected(t.Context(), read)
		step("the doctor comes before PgBouncer has heard", 0, 5)
		p.SyncSoon(read)
		p.Close()
		step("the agent has ended", time.Hour, 5)
	})
}
