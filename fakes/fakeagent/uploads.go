package fakeagent

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	core "github.com/pgherd/pgherd/core/upload"
)

type uploadKey struct {
	database id.DatabaseID
	upload   id.UploadID
}

// upload is a customer's file, as far as it has come.
type upload struct {
	size    int64
	expires time.Time
	content []byte
	coming  bool // a chunk is
	dropped bool
}

// Uploads counts the uploads that the server keeps room for.
func (s *Server) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweepUploads()
	return len(s.uploads)
}

// sweepUploads removes what has expired, but for what an operation loads.
func (s *Server) sweepUploads() {
	now := s.clock.Now()
	for key, u := range s.uploads {
		loading := false
		for _, r := range s.restores {
			loading = loading || r.upload == key && !r.switched
		}
		if !loading && !now.Before(u.expires) {
			delete(s.uploads, key)
		}
	}
}

func (s *Server) openUpload(q command.OpenUpload) (command.Uploaded, error) {
	s.sweepUploads()
	key := uploadKey{q.DatabaseID, q.UploadID}
	u := s.uploads[key]
	switch {
	case u == nil && s.faults.storageFull:
		return command.Uploaded{}, command.Refuse(command.ReasonStorageFull, "the server has no room for the upload")
	case u == nil:
		u = &upload{size: q.SizeBytes}
		s.uploads[key] = u
	case u.size != q.SizeBytes:
		return command.Uploaded{}, command.Refuse(command.ReasonConflict, "the upload has another size")
	}
	u.expires = q.ExpiresAt
	return command.Uploaded{ReceivedBytes: int64(len(u.content))}, nil
}

func (s *Server) askUpload(q command.AskUpload) (command.Uploaded, error) {
	s.sweepUploads()
	u := s.uploads[uploadKey{q.DatabaseID, q.UploadID}]
	if u == nil {
		return command.Uploaded{}, command.Refuse(command.ReasonNotFound, "there is no upload %s", q.UploadID)
	}
	return command.Uploaded{ReceivedBytes: int64(len(u.content))}, nil
}

func (s *Server) dropUpload(q command.DropUpload) {
	key := uploadKey{q.DatabaseID, q.UploadID}
	if u := s.uploads[key]; u != nil {
		u.dropped = true
		delete(s.uploads, key)
	}
}

// Send implements ports.Agent.
func (a agent) Send(ctx context.Context, q command.Question, size int64, body io.Reader) (json.RawMessage, error) {
	if snapshot, is := q.(command.KeepSnapshot); is {
		return a.keepSnapshot(ctx, snapshot, size, body)
	}
	c, ok := q.(command.Chunk)
	if !ok {
		return nil, fmt.Errorf("fakeagent: no bytes come with %T", q)
	}
	var u *upload
	err := a.s.answer(ctx, callOf(q), func() (err error) {
		u, err = a.s.admitChunk(c, size)
		return err
	})
	if u == nil {
		return nil, err
	}
	answer, failed := a.s.receive(ctx, u, size, body)
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// admitChunk claims the upload for a chunk.
func (s *Server) admitChunk(c command.Chunk, size int64) (*upload, error) {
	s.sweepUploads()
	u := s.uploads[uploadKey{c.DatabaseID, c.UploadID}]
	switch {
	case u == nil:
		return nil, command.Refuse(command.ReasonNotFound, "there is no upload %s", c.UploadID)
	case u.coming:
		return nil, command.Refuse(command.ReasonBusy, "another chunk of the upload is coming")
	case c.Offset != int64(len(u.content)):
		return nil, command.Refuse(command.ReasonConflict, "the upload has %d bytes", len(u.content))
	case size < 1 || size > u.size-c.Offset:
		return nil, command.Refuse(command.ReasonInvalid, "the chunk goes beyond the upload's size")
	}
	u.coming = true
	return u, nil
}

// receive appends what comes, also of a chunk that breaks off.
func (s *Server) receive(ctx context.Context, u *upload, size int64, body io.Reader) (answer command.Uploaded, err error) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u.coming = false
		answer.ReceivedBytes = int64(len(u.content))
	}()
	for buffer := make([]byte, 32<<10); size > 0; {
		n, err := body.Read(buffer[:min(size, int64(len(buffer)))])
		size -= int64(n)
		if kept := s.keep(u, buffer[:n]); kept != nil {
			return answer, kept
		}
		if ctx.Err() != nil {
			return answer, fmt.Errorf("%w: %w", ErrReplyLost, ctx.Err())
		}
		if err != nil && size > 0 {
			return answer, fmt.Errorf("%w: %w", ErrReplyLost, err)
		}
	}
	return answer, nil
}

func (s *Server) keep(u *upload, more []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.faults.unreachable:
		return ErrReplyLost
	case u.dropped:
		return command.Refuse(command.ReasonNotFound, "the upload was dropped")
	case s.faults.storageFull:
		return command.Refuse(command.ReasonStorageFull, "the disk is full")
	}
	u.content = append(u.content, more...)
	return nil
}

// uploaded is the SQL text that an upload holds, or why it cannot be restored from.
func (u *upload) uploaded(want command.Source) (text, why string) {
	if int64(len(u.content)) != want.SizeBytes || sum(u.content) != want.SHA256 {
		return "", "the upload is not the file that was announced: its size or SHA-256 differs"
	}
	z, err := gzip.NewReader(bytes.NewReader(u.content))
	if err != nil {
		return "", "the upload is not in gzip's format"
	}
	plain, err := io.ReadAll(z)
	if err = errors.Join(err, z.Close()); err != nil {
		return "", "the upload is not in gzip's format"
	}
	if want.MaxBytes > 0 && int64(len(plain)) > want.MaxBytes {
		return "", "the upload holds more than the database may"
	}
	return string(plain), ""
}

// incomplete says why a text may be a part of a dump only; empty: it is whole, or that is accepted.
func incomplete(text string, accepted bool) string {
	ending, _ := core.ReadEnding(strings.NewReader(text)) // which does not fail
	var no *fault.Error
	if errors.As(ending.Check(accepted), &no) {
		return no.Message
	}
	return ""
}
