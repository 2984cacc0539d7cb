// Package blob keeps files where backups are stored: in a folder, or in a bucket of an object store.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"
)

// Store keeps blobs by their names. A blob is there whole, or not at all, and is durable once a method has returned. A name has
// one or more parts of letters, digits, "_", "-" and ".", with slashes between them. A Store may be used concurrently.
//
// An error that is none of those below says nothing about a blob: the store is away, or refuses. What was asked for may have been
// done. Explain says why.
type Store interface {
	// Move stores the file at a path under a name that no other blob ever has, and removes it.
	Move(ctx context.Context, path, name string) error
	// MoveNew is Move for a name that another blob may have: then it returns ErrExists. Of two at the same time one succeeds.
	MoveNew(ctx context.Context, path, name string) error
	// Open opens a blob for reading. ErrNotFound: there is none. A reader whose blob is deleted meanwhile reads it to its end, or
	// fails.
	Open(ctx context.Context, name string) (io.ReadCloser, Info, error)
	// List lists up to limit blobs whose names begin with prefix and come after a name, in the order of their names' bytes, and
	// reports whether there are more. limit is from 1 to ListLimit.
	List(ctx context.Context, prefix, after string, limit int) (list []Info, more bool, err error)
	// Delete removes a blob. It is no error if there is none.
	Delete(ctx context.Context, name string) error
	// Clean removes what is left of moves that have not ended, but of those to names that keep reports: it ends them, too.
	Clean(ctx context.Context, keep func(name string) bool) error
	// Late is how long a blob may still appear that was begun by a process that is gone, or was taken to be.
	Late() time.Duration
	// Where says where that is, for an operator.
	Where() string
	// Explain says in one line, for an operator, why a method has failed, and what to do.
	Explain(err error) string
}

// Info is about a blob.
type Info struct {
	Name      string
	Bytes     int64
	ChangedAt time.Time // by the clock of the store
}

// ListLimit is the most that one List returns.
const ListLimit = 1000

// Errors of a Store.
var (
	ErrNotFound = errors.New("there is no blob of that name")
	ErrExists   = errors.New("there is a blob of that name already")
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`)

// maxName is how long a name may be. Object stores take 1,024 bytes, with the prefix.
const maxName = 512

// CheckName refuses what is no name, so that none leaves the store.
func CheckName(name string) error {
	if len(name) > maxName || !namePattern.MatchString(name) {
		return fmt.Errorf("%q is no name of a blob", name)
	}
	return nil
}
