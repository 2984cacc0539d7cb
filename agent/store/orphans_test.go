package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/fault"
)

// faulty is a folder that fails once.
type faulty struct {
	*blob.Folder
	moves int  // until one fails
	done  bool // what fails
	late  time.Duration
	seen  func() // once something was listed
}

var errAway = errors.New("away")

func (f *faulty) once(move func(context.Context, string, string) error, ctx context.Context, path, name string) error {
	if f.moves--; f.moves != 0 {
		return move(ctx, path, name)
	}
	if f.done {
		return errors.Join(errAway, move(ctx, path, name))
	}
	return errAway
}

func (f *faulty) Move(ctx context.Context, path, name string) error {
	return f.once(f.Folder.Move, ctx, path, name)
}

func (f *faulty) MoveNew(ctx context.Context, path, name string) error {
	return f.once(f.Folder.MoveNew, ctx, path, name)
}

func (f *faulty) List(ctx context.Context, prefix, after string, limit int) ([]blob.Info, bool, error) {
	list, more, err := f.Folder.List(ctx, prefix, after, limit)
	if f.seen != nil {
		f.seen()
	}
	return list, more, err
}

func (f *faulty) Late() time.Duration { return f.late }

// Whichever step fails, and whether or not what it was to do is done: a commit that is repeated ends with one whole set, and one
// that is given up with none, but where nobody knows whether the record came.
func TestACommitThatFailsOnce(t *testing.T) {
	for _, c := range []struct {
		step        int // from the first
		done, again bool
		left, swept int // what is there after the end, and what then is an orphan
	}{
		{1, false, true, 4, 0}, {1, true, true, 4, 0}, {1, false, false, 0, 0}, {1, true, false, 0, 0},
		{2, false, true, 4, 0}, {2, true, true, 4, 0}, {2, false, false, 0, 0}, {2, true, false, 0, 0},
		{3, false, true, 4, 0}, {3, true, true, 4, 0}, {3, false, false, 0, 0}, {3, true, false, 0, 0},
		{4, false, true, 4, 0}, {4, true, true, 4, 0}, {4, false, false, 3, 3}, {4, true, false, 4, 0},
	} {
		root, ctx := t.TempDir(), t.Context()
		s := open(t, root, &faulty{Folder: blob.NewFolder(root), moves: c.step, done: c.done})
		d, m := prepare(t, s, db, name)
		steps := 0
		count := func(string) { steps++ }
		if err := d.Commit(ctx, count); !errors.Is(err, errAway) {
			t.Errorf("%+v: %v", c, err)
		}
		if c.again {
			if err := d.Commit(ctx, count); err != nil || steps != 3 {
				t.Errorf("%+v: again: %v, %d steps", c, err, steps)
			}
		}
		check.NoError(t, d.End(ctx))
		if left := files(t, root); len(left) != c.left {
			t.Errorf("%+v: there are %v", c, left)
		}
		if n, err := s.SweepBlobs(ctx, time.Now()); n != c.swept || err != nil {
			t.Errorf("%+v: %d orphans, %v", c, n, err)
		}
		if err := whole(ctx, s, m); c.left == 4 && err != nil || c.left < 4 && !fault.Has(err, fault.BackupNotFound) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Of two drafts of one backup one is committed. What the other has moved is an orphan.
func TestABackupIsCommittedOnce(t *testing.T) {
	root, ctx := t.TempDir(), t.Context()
	s := open(t, root, nil)
	second, _ := prepare(t, s, db, name)
	m := keep(t, s, db, name)
	for range 2 {
		if err := second.Commit(ctx, none); !errors.Is(err, store.ErrCommitted) {
			t.Error(err)
		}
	}
	check.NoError(t, second.End(ctx))
	if n, err := s.SweepBlobs(ctx, time.Now()); n != 3 || err != nil {
		t.Errorf("%d orphans, %v", n, err)
	}
	if err := whole(ctx, s, m); err != nil || len(files(t, root)) != 4 {
		t.Error(files(t, root), err)
	}
}

// A sweep keeps sets with their marks, what is being committed, and what may still get its record.
func TestSweepBlobs(t *testing.T) {
	for _, c := range []struct {
		late, age time.Duration
		removed   int
	}{{0, 0, 4}, {time.Hour, time.Minute, 0}, {time.Hour, 2 * time.Hour, 4}} {
		root, ctx := t.TempDir(), t.Context()
		blobs := &faulty{Folder: blob.NewFolder(root), late: c.late}
		crashed, _ := prepare(t, open(t, root, blobs), db, name)
		crash(t, crashed, "file")
		s := open(t, root, blobs)
		m := keep(t, s, db, name)
		check.NoError(t, s.MarkVerified(ctx, m, time.Now()))
		check.NoError(t, os.WriteFile(filepath.Join(root, "try.abc"), []byte("try"), 0o600))
		running, of := prepare(t, s, otherDB, name)
		check.NoError(t, running.Commit(ctx, func(step string) {
			want := 0
			if step == "sidecar" {
				want = c.removed
			}
			if n, err := s.SweepBlobs(ctx, time.Now().Add(c.age)); n != want || err != nil {
				t.Errorf("%+v: after %q: %d orphans, %v", c, step, n, err)
			}
		}))
		check.NoError(t, running.End(ctx))
		if err := errors.Join(whole(ctx, s, m), whole(ctx, s, of)); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if at, err := s.VerifiedAt(ctx, m); at == nil || err != nil {
			t.Errorf("%+v: the mark: %v, %v", c, at, err)
		}
		if left := files(t, root); len(left) != 13-c.removed {
			t.Errorf("%+v: there are %v", c, left)
		}
	}
}

// A set may be committed when its other blobs were already listed.
func TestSweepBlobsKeepsWhatWasCommittedMeanwhile(t *testing.T) {
	root, ctx := t.TempDir(), t.Context()
	blobs := &faulty{Folder: blob.NewFolder(root), moves: 4}
	s := open(t, root, blobs)
	d, m := prepare(t, s, db, name)
	if err := d.Commit(ctx, none); !errors.Is(err, errAway) {
		t.Error(err)
	}
	blobs.seen = func() {
		check.NoError(t, d.Commit(ctx, none))
		check.NoError(t, d.End(ctx))
	}
	if n, err := s.SweepBlobs(ctx, time.Now()); n != 0 || err != nil {
		t.Errorf("%d orphans, %v", n, err)
	}
	blobs.seen = nil
	if err := whole(ctx, s, m); err != nil {
		t.Error(err)
	}
}
