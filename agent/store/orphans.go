package store

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// SweepBlobs removes blobs of sets that no record names, once nobody can be about to commit them, and returns how many. It reads
// all names.
func (s *Store) SweepBlobs(ctx context.Context, now time.Time) (removed int, err error) {
	if err := s.claim(ctx); err != nil {
		return 0, err
	}
	err = s.blobs.Clean(ctx, func(name string) bool {
		attempt, isPart := attemptIn(name)
		return isPart && s.isDraft(attempt) || s.isDraft(name)
	})
	if err != nil {
		return 0, s.unavailable(err)
	}
	var group []blob.Info
	var errs []error
	flush := func() {
		n, err := s.sweepGroup(ctx, group, now)
		removed, group = removed+n, group[:0]
		errs = append(errs, err)
	}
	err = s.each(ctx, "", func(b blob.Info) error {
		if len(group) > 0 && groupOf(group[0].Name) != groupOf(b.Name) {
			flush()
		}
		group = append(group, b)
		return ctx.Err()
	})
	flush()
	return removed, errors.Join(append(errs, err)...)
}

// groupOf is what the names of the blobs of one backup begin with.
func groupOf(name string) string {
	folder, file := path.Split(name)
	stem, _, _ := strings.Cut(file, ".")
	return folder + stem
}

// sweepGroup removes those blobs of one backup that are no longer or not yet of its set. Whether an attempt is over is asked
// before the record is read, which is the last that one writes.
func (s *Store) sweepGroup(ctx context.Context, group []blob.Info, now time.Time) (removed int, err error) {
	over := slices.DeleteFunc(slices.Clone(group), func(b blob.Info) bool {
		attempt, isPart := attemptIn(b.Name)
		return !isPart || s.isDraft(attempt) || now.Sub(b.ChangedAt) < s.blobs.Late()
	})
	if len(over) == 0 {
		return 0, nil
	}
	keep, err := s.attemptOf(ctx, groupOf(group[0].Name))
	if err != nil {
		return 0, err
	}
	for _, b := range over {
		if attempt, _ := attemptIn(b.Name); attempt == keep {
			continue
		}
		if err := s.blobs.Delete(ctx, b.Name); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// attemptOf is the attempt that the record of a backup names; empty where there is none.
func (s *Store) attemptOf(ctx context.Context, begin string) (string, error) {
	src, _, err := s.blobs.Open(ctx, begin+recordEnding) // without a key: a database that is gone has none
	if errors.Is(err, blob.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if err := src.Close(); err != nil {
		return "", err
	}
	db, stem, _ := strings.Cut(begin, "/")
	set, err := s.find(ctx, id.DatabaseID(db), backup.Filename(stem+backup.FileSuffix))
	if fault.Has(err, fault.BackupNotFound) { // it was deleted meanwhile, with the others
		return "", nil
	}
	return strings.TrimPrefix(set.stem, begin+"."), err
}

// attemptIn is the attempt in the name of a blob of a set, or of a try.
func attemptIn(name string) (attempt string, ok bool) {
	if after, isTry := strings.CutPrefix(name, tryName+"."); isTry {
		return after, true
	}
	rest, isPart := strings.CutPrefix(name, groupOf(name)+".")
	attempt, ending, _ := strings.Cut(rest, ".")
	switch "." + ending {
	case dataEnding, sidecarEnding, manifestEnding, verifiedEnding:
		return attempt, isPart
	}
	return "", false
}

// draft keeps the blobs of an attempt from SweepBlobs until it is over.
func (s *Store) draft(attempt string) (over func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drafts[attempt] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.drafts, attempt)
	}
}

func (s *Store) isDraft(attempt string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drafts[attempt]
}
