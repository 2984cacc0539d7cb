package archive

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
)

// fed is an engine that has some files.
type fed struct {
	Engine
	has     map[string]bool
	left    Segment // is not fetched ahead
	wrong   error
	mu      sync.Mutex
	batches []int
	singles []string
}

func (e *fed) Ahead(folder string, s Segment) string {
	return filepath.Join(folder, "ahead-"+string(s))
}

func (e *fed) GetAhead(_ context.Context, _, folder string, list []Segment) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.batches = append(e.batches, len(list))
	for _, s := range list {
		if s != e.left {
			if err := os.WriteFile(e.Ahead(folder, s), []byte(s), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *fed) Get(_ context.Context, _, name, path string) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.singles = append(e.singles, name)
	if e.wrong != nil || !e.has[name] {
		return false, e.wrong
	}
	return true, os.WriteFile(path, []byte(name), 0o600)
}

// sideOfSegments is a server that replays so many, and does not run.
func sideOfSegments(t *testing.T, e Engine, count int) (s *Side, names []Segment) {
	t.Helper()
	a := &Archive{Config: Config{Log: zap.NewNop()}, engine: e, place: Place{segmentSize: segmentSize}}
	names = append(names, "000000010000000000000001")
	for range count - 1 {
		names = append(names, names[len(names)-1].next(segmentSize))
	}
	return &Side{archive: a, dir: t.TempDir(), span: Span{First: names[0], Last: names[len(names)-1]}}, names
}

// restores runs the restore_command as PostgreSQL does, and returns its status and what it has put in its place.
func restores(t *testing.T, s *Side, files []*os.File, name string) (status int, text string) {
	t.Helper()
	target := filepath.Join(s.dir, "target")
	_ = os.Remove(target) // there may be none
	cmd := exec.Command("sh", "-c", strings.NewReplacer("%f", name, "%p", target).Replace(feedCommand))
	cmd.ExtraFiles = files
	_ = cmd.Run() // its status says it
	if status = cmd.ProcessState.ExitCode(); status < 0 {
		status = 128 // a signal
	}
	got, _ := os.ReadFile(target)
	return status, string(got)
}

// Segments are fetched in batches that grow, up to the last that is needed; one that does not come, and everything else, is
// fetched by itself. What the archive does not have is its end.
func TestSegmentsAreFetchedAhead(t *testing.T) {
	e := &fed{has: map[string]bool{}}
	s, names := sideOfSegments(t, e, 150)
	e.left = names[20]
	e.has[string(e.left)], e.has["00000002.history"] = true, true
	f, files, err := s.startFeed()
	check.NoError(t, err)
	for _, name := range names {
		if status, text := restores(t, s, files, string(name)); status != 0 || text != string(name) {
			t.Fatalf("%s: status %d, %q", name, status, text)
		}
	}
	if status, text := restores(t, s, files, "00000002.history"); status != 0 || text != "00000002.history" {
		t.Errorf("a history: status %d, %q", status, text)
	}
	beyond := string(names[len(names)-1].next(segmentSize))
	for _, name := range []string{beyond, "00000003.history"} {
		if status, _ := restores(t, s, files, name); status != 1 {
			t.Errorf("%s: status %d", name, status)
		}
	}
	check.NoError(t, f.stop())
	if want := []int{4, 8, 16, 32, 64, 26}; !slices.Equal(e.batches, want) {
		t.Errorf("batches of %d, want %d", e.batches, want)
	}
	if want := []string{string(e.left), "00000002.history", beyond, "00000003.history"}; !slices.Equal(e.singles, want) {
		t.Errorf("fetched alone: %q, want %q", e.singles, want)
	}
	if status, _ := restores(t, s, files, string(names[0])); status <= 125 {
		t.Errorf("without an agent the archive has an end: status %d", status)
	}
}

// An archive that does not answer is not its end.
func TestAFileThatCannotBeHad(t *testing.T) {
	away := errors.New("it is away")
	for name, asked := range map[string]string{"a history": "00000002.history", "no file of an archive": "../postgresql.conf"} {
		s, _ := sideOfSegments(t, &fed{wrong: away}, 1)
		f, files, err := s.startFeed()
		check.NoError(t, err)
		if status, _ := restores(t, s, files, asked); status != 126 {
			t.Errorf("%s: status %d", name, status)
		}
		if err := f.stop(); err == nil || (asked == "00000002.history") != errors.Is(err, away) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
