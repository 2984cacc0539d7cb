package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/server"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// Begun is what is known of the file that passes, before its data are there: the part Head. The errors are those of Open.
func (k *Known) Begun(ctx context.Context, op id.OperationID, name backup.Filename) (m backup.Manifest, err error) {
	f := &fetched{known: k, ctx: ctx, op: op, path: passingPath(op, name, Head), most: backup.MaxManifestBytes}
	src, _, err := f.open()
	if err != nil {
		return m, err
	}
	defer src.Close()
	text, err := io.ReadAll(src)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, &UnlikeError{"gives no manifest: " + err.Error()}
	}
	if m.OperationID != op || m.Filename != name {
		return m, &UnlikeError{"gives the manifest of another file"}
	}
	return m, nil
}

// Open opens a part of the file that was begun, of at most so many bytes, as it was before it was sealed. Where the connection
// breaks off, it goes on behind what has come. The size of a File is server.Growing while it is being written: who reads further
// waits. An *AwayError: the peer did not answer for a while, or has not made the part for so long, or another file was begun
// since: who reads it begins again. An *UnlikeError: the peer has no such file, a longer one, or admits this agent no more.
func (k *Known) Open(ctx context.Context, m backup.Manifest, part Part, most int64) (io.ReadCloser, int64, error) {
	f := &fetched{
		known: k, ctx: ctx, op: m.OperationID, path: passingPath(m.OperationID, m.Filename, part), made: made(m.CreatedAt),
		most: most, grows: part == File,
	}
	return f.open()
}

// fetched is a file of a peer that is read. Its bytes are as many as the first answer has said that said a number, and no more
// are read.
type fetched struct {
	known *Known
	ctx   context.Context
	op    id.OperationID
	path  string
	made  string // which file; empty: whichever it is
	most  int64
	grows bool // it may be of no known size

	size, at int64 // the size is server.Growing until it is known
	body     io.ReadCloser
	end      context.CancelFunc // of the request
	missed   time.Time          // when it was first asked for, or broke off, since the last byte came; zero: not yet
}

// The pauses before a file is asked for again grow between these, for as long as nothing comes.
const firstPause, mostPause = 200 * time.Millisecond, 5 * time.Second

func (f *fetched) open() (io.ReadCloser, int64, error) {
	f.size, f.missed = server.Growing, time.Now()
	if err := f.reopen(); err != nil {
		return nil, 0, err
	}
	f.missed = time.Time{}
	return f, f.size, nil
}

// again goes on behind what has come of a file that broke off. One that was silent before may be there.
func (f *fetched) again(broken error) error {
	switch {
	case f.missed.IsZero():
		f.missed = time.Now()
	case time.Since(f.missed) > f.known.Patience:
		return &AwayError{broken, time.Since(f.missed)}
	default: // it answers, and gives nothing
		if err := loop.Wait(f.ctx, firstPause); err != nil {
			return err
		}
	}
	return f.reopen()
}

// reopen asks for what follows on what is here, until it comes.
func (f *fetched) reopen() error {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		err := f.ask()
		var away *AwayError
		if !errors.As(err, &away) {
			return err
		}
		away.After = time.Since(f.missed)
		if errors.Is(away.Cause, errAnew) || f.ctx.Err() != nil || away.After > f.known.Patience {
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
	which := url.Values{fromKey: {strconv.FormatInt(f.at, 10)}, madeKey: {f.made}}
	resp, err := get(ctx, p, f.path+"?"+which.Encode())
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

// fits refuses a file that is not as long as it was, or has no length where it is complete.
func (f *fetched) fits(resp *http.Response) error {
	if resp.ContentLength < 0 {
		if !f.grows || f.size != server.Growing {
			return &UnlikeError{"gives another file than before"}
		}
		return nil
	}
	if resp.ContentLength > f.most-f.at { // said so, a length that no file has makes no sum
		return &UnlikeError{fmt.Sprintf("gives a file that is longer than %d bytes", f.most)}
	}
	size := f.at + resp.ContentLength
	if f.size != server.Growing && size != f.size {
		return &UnlikeError{"gives another file than before"}
	}
	f.size = size
	return nil
}

// growingFactor is how much longer than others the next piece of a file may take that is still being written.
const growingFactor = 10

// piece is how long the next piece may take, and how large it may be.
func (f *fetched) piece(p []byte) (time.Duration, []byte) {
	if f.size == server.Growing {
		return growingFactor * f.known.Piece, p
	}
	return f.known.Piece, p[:min(int64(len(p)), f.size-f.at)]
}

// Read implements io.Reader.
func (f *fetched) Read(p []byte) (int, error) {
	for {
		if f.at == f.size {
			return 0, io.EOF
		}
		patience, p := f.piece(p)
		late := time.AfterFunc(patience, f.end)
		n, err := f.body.Read(p)
		late.Stop()
		if n > 0 {
			f.at, f.missed = f.at+int64(n), time.Time{}
			return n, nil
		}
		if f.size == server.Growing && errors.Is(err, io.EOF) { // its end was said, not cut off
			f.size = f.at
		}
		if err == nil || f.size == f.at {
			continue
		}
		if f.ctx.Err() != nil {
			return 0, context.Cause(f.ctx)
		}
		_ = f.Close()
		if err := f.again(err); err != nil {
			return 0, err
		}
	}
}

// Close implements io.Closer.
func (f *fetched) Close() error {
	f.end()
	return f.body.Close()
}
