package archive

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
)

// pushing is an engine that stores segments in its own way.
type pushing struct {
	Engine
	push func(ctx context.Context, path string) error
}

func (p pushing) Push(ctx context.Context, path string) error { return p.push(ctx, path) }

// A segment is let go of where what waits leaves too little room, also while the store hangs or is too slow, and nowhere else.
func TestWhenASegmentIsLetGoOf(t *testing.T) {
	const waiting, large = 5, 4 << 40 // together more than any disk of a test has free
	away := errors.New("the store is away")
	stores := func(context.Context, string) error { return nil }
	fails := func(context.Context, string) error { return away }
	hangs := func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
	fills := func(ctx context.Context, path string) error { // while it hangs
		for n := range waiting {
			if err := os.Truncate(filepath.Join(filepath.Dir(path), string(segment(n))), large); err != nil {
				return err
			}
		}
		return hangs(ctx, path)
	}
	for name, c := range map[string]struct {
		size, segment int64
		before        bool // it failed before
		push          func(ctx context.Context, path string) error
		dropped       int
		want          error
	}{
		"stored":                           {1, 1, false, stores, 0, nil},
		"away, with room":                  {1, 1, true, fails, 0, away},
		"away, without room":               {large, large, false, fails, 1, nil},
		"away for long, without room":      {large, large, true, hangs, 1, nil},
		"without room, and few wait":       {large, 2 * large, false, stores, 0, nil},
		"written faster than it is stored": {large, large, false, stores, 1, nil},
		"it hangs, and there is room":      {1, 1, false, hangs, 0, context.DeadlineExceeded},
		"it hangs, and the room goes":      {1, 1, false, fills, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := check.Must(New(Config{Dir: t.TempDir(), Log: zap.NewNop()}))(t)
			a.place.segmentSize = c.segment
			if c.before {
				a.trouble.since = time.Now()
			}
			wal := t.TempDir()
			check.NoError(t, os.Mkdir(filepath.Join(wal, "archive_status"), 0o700))
			for n := range waiting {
				path := filepath.Join(wal, string(segment(n)))
				check.NoError(t, os.WriteFile(path, nil, 0o600))
				check.NoError(t, os.Truncate(path, c.size))
				check.NoError(t, os.WriteFile(filepath.Join(wal, "archive_status", string(segment(n))+".ready"), nil, 0o600))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*hurryEvery)
			defer cancel()
			err := a.push(ctx, pushing{push: c.push}, filepath.Join(wal, string(segment(0))), time.Now())
			if s := a.Standing(); !errors.Is(err, c.want) || s.Dropped != c.dropped {
				t.Errorf("%v, and %d are let go of", err, s.Dropped)
			}
			if last, some := a.journal.last(); some != (c.dropped == 0 && err == nil) {
				t.Errorf("the journal ends with %v", last)
			}
		})
	}
}
