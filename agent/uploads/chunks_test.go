package uploads_test

import (
	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"

	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

type world struct{ *backuptest.World }

// sender has begun to send a chunk of ten bytes.
type sender struct {
	of   id.UploadID
	body *io.PipeWriter
	said chan error // how the chunk ended
}

// sends announces an upload and begins to send it; in reports whether the agent has taken the first byte.
func (w *world) sends() (s sender, in bool) {
	w.T.Helper()
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	s.of = id.FromBytes[id.UploadID](random)
	opened := command.OpenUpload{
		DatabaseID: backuptest.DatabaseID, UploadID: s.of, SizeBytes: 10, ExpiresAt: time.Now().Add(time.Hour),
	}
	check.Must(w.Agent.Uploads.Open(w.T.Context(), opened))(w.T)
	return w.sendsTo(s.of)
}

func (w *world) sendsTo(of id.UploadID) (s sender, in bool) {
	from, to := io.Pipe()
	s = sender{of: of, body: to, said: make(chan error, 1)}
	go func() {
		chunk := command.Chunk{DatabaseID: backuptest.DatabaseID, UploadID: of}
		_, err := w.Agent.Uploads.Receive(context.WithoutCancel(w.T.Context()), chunk, 10, from)
		s.said <- err
		_ = from.CloseWithError(io.ErrClosedPipe)
	}()
	_, err := io.WriteString(to, "0")
	return s, err == nil
}

// However many customers send at a time, and however slowly, the agent takes so many, and whoever comes then is told to come
// again. Whatever ends a chunk, its place is another's. One account, which can have four uploads, leaves most of the places.
func TestChunksAtATime(t *testing.T) {
	w := &world{backuptest.NewOwn(t)}
	const most = 32
	var coming []sender
	for range most {
		s, in := w.sends()
		if !in {
			t.Fatalf("chunk %d: %v", len(coming)+1, <-s.said)
		}
		coming = append(coming, s)
	}
	late, in := w.sends()
	wantCrowded(t, in, late)
	for i, ends := range []struct {
		how string
		end func(s sender) error
	}{
		{"its last byte", func(s sender) error { _, err := io.WriteString(s.body, strings.Repeat("x", 9)); return err }},
		{"its sender", func(s sender) error { return s.body.CloseWithError(errors.New("gone")) }},
		{"a drop", func(s sender) error {
			_, err := w.Agent.Uploads.Drop(t.Context(), command.DropUpload{DatabaseID: backuptest.DatabaseID, UploadID: s.of})
			return err
		}},
	} {
		if err := ends.end(coming[i]); err != nil {
			t.Fatal(ends.how, ": ", err)
		}
		<-coming[i].said
		next, in := w.sendsTo(late.of)
		if !in {
			t.Fatalf("after %s: %v", ends.how, <-next.said)
		}
		coming[i] = next
		late, in = w.sends()
		wantCrowded(t, in, late)
	}
	for _, s := range coming {
		_ = s.body.Close() // what is there is enough
		<-s.said
	}
}

func wantCrowded(t *testing.T, in bool, s sender) {
	t.Helper()
	if in {
		t.Fatal("one more is let in")
	}
	if err := <-s.said; !command.RefusedFor(err, command.ReasonCrowded) {
		t.Errorf("one more: %v", err)
	}
}
