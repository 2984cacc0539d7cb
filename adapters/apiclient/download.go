package apiclient

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Download is a file that is being downloaded. Where its connection breaks, or brings nothing for too long, it is asked for
// again, and goes on where it was: from there where the server can, else from the start, whose bytes must be the same again.
// Continue has it go on after what an earlier process has kept.
type Download struct {
	// Size is that of the file; -1 where the server does not say.
	Size int64
	// Header is that of the first answer; nil where Continue left nothing to ask for.
	Header http.Header

	c       *Client
	ctx     context.Context
	end     context.CancelFunc
	request Request
	tag     string // the file's strong ETag; empty where it has none
	part    *part  // nil where nothing had to be asked for
	sum     hash.Hash
	read    int64
	again   func() // see Again
	broken  int    // times in a row without a byte between them
	failed  error  // for good
}

// ErrOtherFile is the error of a download whose first bytes, read earlier or given to Continue, are not those of the file.
var ErrOtherFile = errors.New("apiclient: what was read before is not the beginning of this file")

// Continue has a download go on after the bytes that the caller has of the file: have is read to its end. The size and the
// SHA-256 are those of the whole file. Read returns what comes after; SHA256 is of both. A server that can go on in the middle
// of a file is not asked for the beginning again, so that only the checksum at the end tells whether have was of the same file.
func Continue(have io.Reader, size int64, sha256 string) Option {
	return func(o *options) { o.have, o.size, o.tag = have, size, `"`+sha256+`"` }
}

// Again has f called where the rest of a download was asked for and the server sends the file from its start: what was read
// before comes once more, and is compared, before Read returns the next byte.
func Again(f func()) Option {
	return func(o *options) { o.again = f }
}

func (c *Client) download(ctx context.Context, r call, opts []Option) (*Download, error) {
	request, o, err := c.request(r, opts)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", "identity") // sizes and offsets are those of the file
	d := &Download{c: c, request: request, sum: sha256.New(), again: func() {}}
	if o.again != nil {
		d.again = o.again
	}
	if o.have != nil {
		if d.read, err = io.Copy(d.sum, o.have); err != nil {
			return nil, err
		}
	}
	d.ctx, d.end = context.WithCancel(ctx)
	switch {
	case d.read == 0:
		err = c.repeat(d.ctx, true, d.begin)
	case d.read < o.size:
		d.Size, d.tag = o.size, o.tag
		err = c.repeat(d.ctx, true, d.reopen)
	case d.read == o.size:
		d.Size = o.size
	default:
		err = ErrOtherFile
	}
	if err != nil {
		d.end()
		return nil, err
	}
	return d, nil
}

func (d *Download) begin(ctx context.Context) error {
	p, err := d.c.openPart(ctx, d.request)
	if err != nil {
		return err
	}
	d.part, d.Size, d.Header = p, p.response.ContentLength, p.response.Header
	if tag := p.response.Header.Get("ETag"); p.response.Header.Get("Accept-Ranges") == "bytes" && strings.HasPrefix(tag, `"`) {
		d.tag = tag
	}
	return nil
}

// Read implements io.Reader. It returns io.EOF only where the file has come whole.
func (d *Download) Read(p []byte) (n int, err error) {
	if d.part == nil {
		return 0, io.EOF
	}
	for d.failed == nil {
		n, err = d.part.Read(p)
		if n > 0 {
			d.sum.Write(p[:n])
			d.read += int64(n)
			d.broken = 0
			return n, nil
		}
		if err == nil || errors.Is(err, io.EOF) && (d.Size < 0 || d.read == d.Size) {
			return 0, err
		}
		d.failed = d.resume(unanswered{
			fmt.Errorf("apiclient: the download broke off after %d of %d bytes: %w", d.read, d.Size, err), true,
		})
	}
	return 0, d.failed
}

// SHA256 is the checksum of what has been read, as a backup's ChecksumSHA256 is of the whole file.
func (d *Download) SHA256() string { return hex.EncodeToString(d.sum.Sum(nil)) }

// Close ends the download, also while another goroutine waits in Read. Of a file that is not whole, the connection is closed.
func (d *Download) Close() error {
	d.end()
	return nil
}

// resume opens the rest of the file. It gives up where the file breaks off at the same byte each time.
func (d *Download) resume(cause error) error {
	_ = d.part.Close() // it is broken
	d.broken++
	if d.broken >= d.c.retry.attempts || d.ctx.Err() != nil {
		return cause
	}
	return d.c.repeat(d.ctx, true, d.reopen)
}

func (d *Download) reopen(ctx context.Context) error {
	request := d.request
	if d.tag != "" {
		request.Header = request.Header.Clone()
		request.Header.Set("Range", "bytes="+strconv.FormatInt(d.read, 10)+"-")
		request.Header.Set("If-Range", d.tag)
	}
	p, err := d.c.openPart(ctx, request)
	if err != nil {
		return err
	}
	if p.response.StatusCode == http.StatusPartialContent {
		err = d.checkRange(p)
	} else {
		d.again()
		err = d.skip(p)
	}
	if err != nil {
		return errors.Join(err, p.Close())
	}
	d.part = p
	if d.Header == nil {
		d.Header = p.response.Header
	}
	return nil
}

func (d *Download) checkRange(p *part) error {
	want := fmt.Sprintf("bytes %d-%d/%d", d.read, d.Size-1, d.Size)
	if have := p.response.Header.Get("Content-Range"); have != want {
		return permanent{fmt.Errorf("apiclient: the rest of the download is %q, not %q", have, want)}
	}
	return nil
}

// skip reads the bytes again that the caller has.
func (d *Download) skip(p *part) error {
	if p.response.ContentLength != d.Size {
		return permanent{ErrOtherFile}
	}
	again := sha256.New()
	if _, err := io.CopyN(again, p, d.read); err != nil {
		return unanswered{fmt.Errorf("apiclient: the download broke off again: %w", err), true}
	}
	if !bytes.Equal(again.Sum(nil), d.sum.Sum(nil)) {
		return permanent{ErrOtherFile}
	}
	return nil
}
