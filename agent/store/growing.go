package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/pgherd/pgherd/agent/sealed"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// Growing is a set that is being written, as it is shown to who reads it meanwhile.
type Growing struct {
	OperationID id.OperationID
	CreatedAt   time.Time // as in the manifest: a set that is made anew has another
	Head        []byte    // what is known before the data

	key        []byte
	name, path string
	growth     *growth
}

// ErrGone says that a set which was being written is not completed.
var ErrGone = errors.New("what was being written of the backup is gone")

// Show has Growing find the set until the draft ends. Its data were begun.
func (d *Draft) Show(data *File, g Growing) {
	g.key, g.name, g.path, g.growth = d.key, d.blobName(dataEnding), d.path(dataEnding), &data.growth
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	d.store.shown[d.stem] = &g
}

// hide ends what Show has begun.
func (d *Draft) hide() {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	if g := d.store.shown[d.stem]; g != nil && g.name == d.blobName(dataEnding) {
		delete(d.store.shown, d.stem)
	}
}

// Growing finds a set that is being written and shown.
func (s *Store) Growing(db id.DatabaseID, name backup.Filename) (g Growing, found bool, err error) {
	begin, err := stem(db, name)
	if err != nil {
		return g, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if shown := s.shown[begin]; shown != nil {
		return *shown, true, nil
	}
	return g, false, nil
}

// Open opens the data. Who reads further than they were written waits, until ctx ends. ErrGone: they are not completed.
func (g *Growing) Open(ctx context.Context) (io.ReadCloser, error) {
	file, err := os.Open(g.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("open what is being written of a backup: %w", err)
	}
	opened, err := sealed.NewReader(&following{ctx, file, g.growth}, g.key, g.name)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{opened, file}, nil
}

// following reads a file behind who writes it.
type following struct {
	ctx    context.Context
	file   *os.File
	growth *growth
}

func (f *following) Read(p []byte) (int, error) {
	for {
		more, end := f.growth.now() // before the file is read: what was written until then is seen
		n, err := f.file.Read(p)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		if end != nil {
			return 0, end
		}
		select {
		case <-more:
		case <-f.ctx.Done():
			return 0, context.Cause(f.ctx)
		}
	}
}

// growth tells who reads a file how it is written.
type growth struct {
	mu   sync.Mutex
	more chan struct{} // is closed when there is more, or an end
	end  error         // io.EOF for a complete file; nil while it is written
}

func (g *growth) now() (more <-chan struct{}, end error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.more == nil {
		g.more = make(chan struct{})
	}
	return g.more, g.end
}

func (g *growth) grown() { g.tell(nil) }

// tell says that there is more or, with an error, that there will be no more. The first end counts.
func (g *growth) tell(end error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.end == nil {
		g.end = end
	}
	if g.more != nil {
		close(g.more)
		g.more = nil
	}
}
