package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// OpenPassing opens a part of the file that passes, of at most so many bytes, as it was before it was sealed. Where the
// connection breaks off, it goes on behind what has come. An *AwayError: the peer did not answer for a while. An *UnlikeError: it
// has no such file, a longer one, or admits this agent no more.
func (k *Known) OpenPassing(
	ctx context.Context, op id.OperationID, name backup.Filename, part Part, most int64,
) (io.ReadCloser, int64, error) {
	f := &fetched{known: k, ctx: ctx, op: op, path: passingPath(op, name, part), most: most}
	return f.open()
}

// fetched is a file of a peer that is read. Its bytes are as many as the first answer has said, and no more are read.
type fetched struct {
	known *Known
	ctx   context.Context
	op    id.OperationID
	path  string
	most  int64

	size, at int64
	begun    bool
	body     io.ReadCloser
	end      context.CancelFunc // of the request
	since    time.Time          // when the last byte came
}

// The pauses before a file is asked for again grow between these, for as long as nothing comes.
const firstPause, mostPause = 200 * time.Millisecond, 5 * time.Second

func (f *fetched) open() (io.ReadCloser, int64, error) {
	f.since = time.Now()
	if err := f.reopen(); err != nil {
		return nil, 0, err
	}
	return f, f.size, nil
}

// reopen asks for what follows on what is here, until it comes.
func (f *fetched) reopen() error {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		err := f.ask()
		var away *AwayError
		if !errors.As(err, &away) || f.ctx.Err() != nil || time.Since(f.since) > f.known.Patience {
			return err
		}
		if err := loop.Wait(f.ctx, pause); err != nil {
			return err
		}
	}
}

func (f *fetched) ask() error {
	p, err := f.known.of(f.op)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(f.ctx)
	resp, err := get(ctx, p, f.path+"?"+fromKey+"="+strconv.FormatInt(f.at, 10))
	if err != nil {
		cancel()
		return err
	}
	if err := f.fits(resp); err != nil {
		cancel()
		_ = resp.Body.Close() // nothing of it is wanted
		return err
	}
	f.body, f.end = resp.Body, cancel
	return nil
}

// fits refuses a file that is not as long as it was, or has no length.
func (f *fetched) fits(resp *http.Response) error {
	size := f.at + resp.ContentLength
	switch {
	case resp.ContentLength < 0 || f.begun && size != f.size:
		return &UnlikeError{"gives another file than before"}
	case size > f.most:
		return &UnlikeError{fmt.Sprintf("gives a file that is longer than %d bytes", f.most)}
	}
	f.size, f.begun = size, true
	return nil
}

// Read implements io.Reader.
func (f *fetched) Read(p []byte) (int, error) {
	for {
		if f.at == f.size {
			return 0, io.EOF
		}
		late := time.AfterFunc(f.known.Piece, f.end)
		n, err := f.body.Read(p[:min(int64(len(p)), f.size-f.at)])
		late.Stop()
		if n > 0 {
			f.at, f.since = f.at+int64(n), time.Now()
			return n, nil
		}
		if err == nil {
			continue
		}
		if f.ctx.Err() != nil {
			return 0, context.Cause(f.ctx)
		}
		_ = f.Close() // it broke off
		if time.Since(f.since) > f.known.Patience {
			return 0, &AwayError{err}
		}
		if err := f.reopen(); err != nil {
			return 0, err
		}
	}
}

// Close implements io.Closer.
func (f *fetched) Close() error {
	f.end()
	return f.body.Close()
}
