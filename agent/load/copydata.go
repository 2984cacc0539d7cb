package load

import (
	"io"
	"sync"

	"github.com/pgherd/pgherd/agent/dumpsql"
)

// copyData is the data of one COPY block as a stream. CopyFrom reads it in a goroutine of its own, which it leaves behind where
// the connection breaks.
type copyData struct {
	dump  *dumpsql.Reader
	mu    sync.Mutex
	left  bool
	piece []byte
	ended bool
	err   error // of the dump itself
}

// leave ends the reading. It reports whether all of the block was read, and an error of the dump itself.
func (c *copyData) leave() (whole bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	return c.ended, c.err
}

func (c *copyData) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return 0, io.ErrClosedPipe
	}
	for len(c.piece) == 0 {
		if c.ended {
			return 0, io.EOF
		}
		item, err := c.dump.Next()
		if err != nil {
			c.err = err
			return 0, err
		}
		c.piece, c.ended = item.Text, item.Kind == dumpsql.CopyEnd
		if c.ended {
			c.piece = nil
		}
	}
	n := copy(p, c.piece)
	c.piece = c.piece[n:]
	return n, nil
}
