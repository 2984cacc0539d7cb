package store_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
)

// reread reads a backup again, and says what came of it.
func reread(ctx context.Context, s *store.Store, m backup.StoredManifest) (at *time.Time, found string) {
	at, err := s.Reread(ctx, m.DatabaseID, m.Filename, m.SHA256)
	var damaged *store.DamagedError
	var away *store.UnavailableError
	switch {
	case err == nil:
		return at, "whole"
	case errors.As(err, &damaged):
		return at, "damaged"
	case errors.As(err, &away) && fault.Has(err, fault.BackupStorageUnavailable):
		return at, "away"
	}
	return at, err.Error()
}

func flip(t *testing.T, path string) {
	t.Helper()
	text := check.Must(os.ReadFile(path))(t)
	text[len(text)/2] ^= 4
	check.NoError(t, os.WriteFile(path, text, 0o600))
}

// A bit of any blob of a set, or a blob that is gone, is damage; but the mark is none of the backup, and what is asked with
// another SHA-256 than the manifest's is another backup.
func TestWhatIsReadAgain(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cut := func(t *testing.T, path string) { t.Helper(); check.NoError(t, os.Truncate(path, 50)) }
	gone := func(t *testing.T, path string) { t.Helper(); check.NoError(t, os.Remove(path)) }
	for how, change := range map[string]func(*testing.T, string){"flipped": flip, "cut off": cut, "gone": gone} {
		for _, ending := range []string{".set", ".data", ".schema", ".manifest", ".verified"} {
			root, ctx := t.TempDir(), t.Context()
			s := open(t, root, nil)
			m := keep(t, s, db, name)
			if at, found := reread(ctx, s, m); at != nil || found != "whole" {
				t.Fatalf("not verified: %v, %s", at, found)
			}
			check.NoError(t, s.MarkVerified(ctx, m, now))
			if at, found := reread(ctx, s, m); at == nil || !at.Equal(now) || found != "whole" {
				t.Fatalf("verified: %v, %s", at, found)
			}
			change(t, check.Must(filepath.Glob(filepath.Join(root, string(db), "*"+ending)))(t)[0])
			want := "damaged"
			if ending == ".verified" {
				want = "whole"
			}
			if at, found := reread(ctx, s, m); at != nil || found != want {
				t.Errorf("%s %s: %v, %s", ending, how, at, found)
			}
		}
	}
	s := open(t, t.TempDir(), nil)
	m := keep(t, s, db, name)
	m.SHA256 = keep(t, s, db, later).SHA256
	if _, found := reread(t.Context(), s, m); found != "damaged" {
		t.Errorf("another manifest: %s", found)
	}
}

// odd is a folder of which something happens to the readings of data.
type odd struct {
	*blob.Folder
	reading func(n int, src io.ReadCloser) (io.ReadCloser, error)
	n       int
}

func (o *odd) Open(ctx context.Context, name string) (io.ReadCloser, blob.Info, error) {
	src, info, err := o.Folder.Open(ctx, name)
	if err == nil && filepath.Ext(name) == ".data" {
		o.n++
		src, err = o.reading(o.n, src)
	}
	return src, info, err
}

type broken struct{ io.ReadCloser }

func (broken) Read([]byte) (int, error) { return 0, errAway }

// A store that is away is no damage, nor is what a second reading does not find.
func TestWhatIsNoDamage(t *testing.T) {
	for want, reading := range map[string]func(n int, src io.ReadCloser) (io.ReadCloser, error){
		"away": func(_ int, src io.ReadCloser) (io.ReadCloser, error) { return broken{src}, nil },
		"whole": func(n int, src io.ReadCloser) (io.ReadCloser, error) {
			if n == 1 {
				_, _ = src.Read(make([]byte, 60))
			}
			return src, nil
		},
	} {
		root := t.TempDir()
		s := open(t, root, &odd{Folder: blob.NewFolder(root), reading: reading})
		if _, found := reread(t.Context(), s, keep(t, s, db, name)); found != want {
			t.Errorf("%s: %s", want, found)
		}
	}
}

// A folder in which nothing is, or in which another server keeps its backups, is not the one that they were in.
func TestAnotherPlaceIsNoDamage(t *testing.T) {
	root, ctx := t.TempDir(), t.Context()
	s := store.New(t.TempDir(), store.Options{
		Blobs: blob.NewFolder(root), Reserve: 1, Key: oneKey, Owner: func(context.Context) (string, error) { return "one", nil },
	})
	check.NoError(t, s.Sweep())
	m := keep(t, s, db, name)
	check.NoError(t, os.RemoveAll(filepath.Join(root, string(db))))
	for _, c := range []struct{ owner, want string }{{"one", "damaged"}, {"two", "away"}, {"", "away"}} {
		check.NoError(t, os.WriteFile(filepath.Join(root, "owner"), []byte(c.owner), 0o600))
		if c.owner == "" {
			check.NoError(t, os.Remove(filepath.Join(root, "owner")))
		}
		if _, found := reread(ctx, s, m); found != c.want {
			t.Errorf("of %q: %s", c.owner, found)
		}
	}
}

// A reading ends with its context, whatever is left to read.
func TestAReadingEndsInTime(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, nil)
	d := check.Must(s.Begin(t.Context(), db, name))(t)
	m := backup.Manifest{FormatVersion: 3, DatabaseID: db, OperationID: op, Filename: name}
	for _, part := range []struct {
		create func() (*store.File, error)
		bytes  int
		digest *backup.FileDigest
	}{{d.Data, 40 << 20, &m.File}, {d.Sidecar, 1, &m.Sidecar}} { // more than is read in a second
		file := check.Must(part.create())(t)
		check.Must(file.Write(make([]byte, part.bytes)))(t)
		*part.digest = check.Must(file.Finish())(t)
	}
	stored := check.Must(d.Prepare(m))(t)
	check.NoError(t, d.Commit(t.Context(), none))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, found := reread(ctx, s, stored); found == "whole" || found == "damaged" || time.Since(began) > time.Second {
		t.Errorf("after %s: %s", time.Since(began), found)
	}
}
