package apiclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/upload"
)

const uploadPath = "/databases/%s/backups/restore-upload/%s"

// SendUpload sends a file as an upload. Where that breaks off, it asks how much has come, and goes on from there; so it may
// also be called again after the program has ended. It gives up where it breaks off at the same byte Config.Attempts times.
func (r Restores) SendUpload(
	ctx context.Context, database id.DatabaseID, of id.UploadID, file io.ReaderAt, size int64, opts ...Option,
) error {
	request, o, err := r.c.request(newCall(http.MethodPut, nil, uploadPath, []any{database, of}), opts)
	if err != nil {
		return err
	}
	s := sending{c: r.c, request: request, file: file, size: size, kept: o.response}
	return s.all(ctx)
}

// sending is an upload under way.
type sending struct {
	c       *Client
	request Request
	file    io.ReaderAt
	size    int64
	sent    int64     // that the service has
	kept    *Response // where the caller wants the last answer
}

func (s *sending) all(ctx context.Context) error {
	progress := time.Now()
	for broken := 0; ; {
		before := s.sent
		err := s.rest(ctx)
		if err == nil && s.sent < s.size {
			err = fmt.Errorf("apiclient: the service has %d of %d bytes of the upload", s.sent, s.size)
		}
		if err == nil || !resumable(err) || ctx.Err() != nil {
			return err
		}
		if unknown := s.c.repeat(ctx, true, s.ask); unknown != nil {
			return errors.Join(err, unknown)
		}
		if broken++; s.sent > before {
			broken, progress = 0, time.Now()
		}
		after := err
		if !temporary(err) {
			after = io.ErrUnexpectedEOF // what ended a part need not end the next
		}
		if !s.c.pause(ctx, max(1, broken), time.Since(progress), after) {
			return err
		}
	}
}

// resumable reports whether the rest of an upload may be taken although a part of it was not.
func resumable(err error) bool {
	var e *Error
	return temporary(err) || errors.As(err, &e) && (e.Code == fault.BackupConflict || e.Code == fault.AgentError)
}

// rest sends what is left.
func (s *sending) rest(ctx context.Context) error {
	if s.sent >= s.size {
		return s.ask(ctx)
	}
	part := fmt.Sprintf("bytes %d-%d/%d", s.sent, s.size-1, s.size)
	return s.put(ctx, part, io.NewSectionReader(s.file, s.sent, s.size-s.sent), s.size-s.sent)
}

// ask asks how much has come.
func (s *sending) ask(ctx context.Context) error {
	return s.put(ctx, fmt.Sprintf("bytes */%d", s.size), http.NoBody, 0)
}

// put sends a part once. It has as long as the bytes go on: one that brings none for stallTimeout is ended.
func (s *sending) put(ctx context.Context, part string, body io.Reader, length int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	moving := &moving{Reader: body, limit: s.c.stall, late: time.AfterFunc(s.c.stall, cancel)}
	defer moving.late.Stop()
	request, err := http.NewRequestWithContext(ctx, s.request.Method, s.c.base+s.request.Path, moving)
	if err != nil {
		return permanent{fmt.Errorf("apiclient: %w", err)}
	}
	request.Header, request.ContentLength = s.request.Header.Clone(), length
	request.Header.Set(upload.Header, part)
	if length > 0 {
		request.Header.Set("Content-Type", "application/gzip")
		request.Header.Set("Expect", "100-continue") // a refusal comes before the bytes
	} else {
		request.Body = http.NoBody
	}
	s.c.identify(request.Header)
	response, err := s.c.http.Do(request) //nolint:bodyclose // readAll does
	if err != nil {
		return fmt.Errorf("apiclient: no answer: %w", err)
	}
	answer, err := readAll(response)
	if err != nil {
		return err
	}
	if s.kept != nil {
		*s.kept = answer
	}
	if err := refusal(answer); err != nil {
		return err
	}
	s.sent, err = received(answer.Header.Get("Range"))
	return err
}

// received reads how much has come; nothing is said where nothing has.
func received(header string) (int64, error) {
	if header == "" {
		return 0, nil
	}
	last, ok := strings.CutPrefix(header, "bytes=0-")
	n, err := strconv.ParseUint(last, 10, 62)
	if !ok || err != nil {
		return 0, permanent{fmt.Errorf("apiclient: what has come is %q, which is no range", header)}
	}
	return int64(n) + 1, nil
}

// moving puts off the end of a request for as long as its bytes go.
type moving struct {
	io.Reader
	limit time.Duration
	late  *time.Timer
}

func (m *moving) Read(p []byte) (int, error) {
	m.late.Reset(m.limit)
	return m.Reader.Read(p)
}
