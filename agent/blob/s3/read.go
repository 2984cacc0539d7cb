package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/pgherd/pgherd/agent/loop"
)

// reader reads an object in requests of partSize each, so that no request is open while nobody reads: a restore may take hours.
// A request that breaks off is made again from where it was. All of them are for the object that there was first.
type reader struct {
	ctx        context.Context //nolint:containedctx // of who has opened it, as a file's reader has none
	store      *Store
	key, etag  string
	size, next int64
	part       io.ReadCloser // what is being read; nil: nothing
	left       int64         // of the part
	failures   int           // since something was read
}

const (
	// readTries is how often reading goes on after it has broken off without a byte.
	readTries = 5
	readPause = 500 * time.Millisecond
)

func (r *reader) Read(p []byte) (int, error) {
	for {
		if r.next == r.size {
			return 0, io.EOF
		}
		n, err := r.read(p)
		if n > 0 {
			r.failures = 0
			return n, nil
		}
		if err == nil {
			continue
		}
		if r.failures++; r.failures == readTries || r.ctx.Err() != nil || final(err) {
			return 0, err
		}
		if err := loop.Wait(r.ctx, readPause*time.Duration(r.failures)); err != nil {
			return 0, err
		}
	}
}

// final reports whether the store has answered something that it will answer again.
func final(err error) bool {
	status := answer(err).StatusCode
	return status >= 400 && status < 500
}

// read reads of a part that is open, or of one that it opens.
func (r *reader) read(p []byte) (int, error) {
	if r.part == nil {
		if err := r.open(); err != nil {
			return 0, err
		}
	}
	n, err := r.part.Read(p[:min(int64(len(p)), r.left)])
	r.next += int64(n)
	r.left -= int64(n)
	if r.left == 0 || err != nil {
		if errors.Is(err, io.EOF) && r.left > 0 {
			err = io.ErrUnexpectedEOF
		}
		err = errors.Join(ignoreEOF(err), r.Close())
	}
	return n, err
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

func (r *reader) open() error {
	length := min(partSize, r.size-r.next)
	options := minio.GetObjectOptions{}
	if err := errors.Join(options.SetRange(r.next, r.next+length-1), options.SetMatchETag(r.etag)); err != nil {
		return err
	}
	part, info, _, err := r.store.client.GetObject(r.ctx, r.store.config.Bucket, r.key, options)
	if err != nil {
		return unlessMissing(err)
	}
	if info.Size != length {
		return errors.Join(fmt.Errorf("the object store answers %d bytes for %d", info.Size, length), part.Close())
	}
	r.part, r.left = part, length
	return nil
}

// Close ends reading.
func (r *reader) Close() error {
	if r.part == nil {
		return nil
	}
	part := r.part
	r.part = nil
	return part.Close()
}
