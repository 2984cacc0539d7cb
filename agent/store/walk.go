package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/sealed"
)

// Entry is a blob, or a file in the folder, whatever it is.
type Entry struct {
	Path string
	// Bytes are those that a blob of a set was made of.
	Bytes     int64
	ChangedAt time.Time
}

// Walk lists up to limit blobs and files whose paths come after a path, in a fixed order, and reports whether there are more:
// first the blobs, then what only this machine has. What goes meanwhile is left out, and so are snapshots.
func (s *Store) Walk(ctx context.Context, after string, limit int) (list []Entry, more bool, err error) {
	add := func(of blob.Store, prefix string, skip func(string) bool) error {
		for from, further := after, true; further; {
			var found []blob.Info
			var err error
			found, further, err = of.List(ctx, prefix, from, min(limit-len(list)+1, blob.ListLimit))
			if err != nil {
				return fmt.Errorf("list the files of backups: %w", err)
			}
			for _, b := range found {
				if from = b.Name; skip(b.Name) {
					continue
				}
				if len(list) == limit {
					more = true
					return nil
				}
				list = append(list, entryOf(b))
			}
		}
		return nil
	}
	if !isLocal(after) {
		if err := add(s.blobs, "", func(name string) bool { return isLocal(name) || isSnapshot(name) }); err != nil || more {
			return list, more, err
		}
		after = ""
	}
	local := blob.NewFolder(s.root)
	for _, folder := range localFolders {
		if err := add(local, folder+"/", func(string) bool { return false }); err != nil || more {
			return list, more, err
		}
	}
	return list, false, nil
}

func entryOf(b blob.Info) Entry {
	e := Entry{Path: b.Name, Bytes: b.Bytes, ChangedAt: b.ChangedAt}
	if _, isPart := attemptIn(b.Name); isPart && !strings.HasPrefix(b.Name, tryName+".") {
		e.Bytes = sealed.Length(b.Bytes)
	}
	return e
}
