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
type Download struct {
	// Size is that of the file; -1 where the server does not say.
	Size int64
	// Header is that of the first answer.
	Header http.Header

	c       *Client
	ctx     context.Context
	end     context.CancelFunc
	request Request
	tag     string // the file's strong ETag; empty where it has none
	part    *part
	sum     hash.Hash
	read    int64
	broken  int   // times in a row without a byte between them
	failed  error // for good
}

var errOtherFile = errors.New("apiclient: the file has changed during its download")

func (c *Client) download(ctx context.Context, r call, opts []Option) (*Download, error) {
	request, _, err := c.request(r, opts)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", "identity") // sizes and offsets are those of the file
	d := &Download{c: c, request: request, sum: sha256.New()}
	d.ctx, d.end = context.WithCancel(ctx)
	if err := c.repeat(d.ctx, true, d.begin); err != nil {
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
		d.failed = d.resume(fmt.Errorf("apiclient: the download broke off after %d of %d bytes: %w", d.read, d.Size, err))
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
		err = d.skip(p)
	}
	if err != nil {
		return errors.Join(err, p.Close())
	}
	d.part = p
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
		return permanent{errOtherFile}
	}
	again := sha256.New()
	if _, err := io.CopyN(again, p, d.read); err != nil {
		return err
	}
	if !bytes.Equal(again.Sum(nil), d.sum.Sum(nil)) {
		return permanent{errOtherFile}
	}
	return nil
}
