package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Entry is a file below the folder, whatever it is.
type Entry struct {
	Path      string // with slashes, below the folder
	Bytes     int64
	ChangedAt time.Time
}

// Walk lists up to limit files whose paths come after a path, in a fixed order, and reports whether there are more. What goes
// meanwhile is left out. No link is followed.
func (s *Store) Walk(ctx context.Context, after string, limit int) (list []Entry, more bool, err error) {
	begin := rank(after)
	err = fs.WalkDir(os.DirFS(s.root), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case entry.IsDir() && path != "." && rank(path)+"\x01" <= begin:
			return fs.SkipDir
		case entry.IsDir() || rank(path) <= begin:
			return nil
		case len(list) == limit:
			more = true
			return fs.SkipAll
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		list = append(list, Entry{Path: path, Bytes: info.Size(), ChangedAt: info.ModTime()})
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("list the files of backups: %w", err)
	}
	return list, more, nil
}

// rank orders paths as a walk does, which has done with a folder before it comes to the next name.
func rank(path string) string { return strings.ReplaceAll(path, "/", "\x00") }
