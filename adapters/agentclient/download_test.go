package agentclient_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/ports"
)

func open(t *testing.T, ctx context.Context, handler http.HandlerFunc) ports.File {
	t.Helper()
	file, err := agentOf(t, newWire(t, handler).server(t)).Open(ctx, command.OpenBackup{DatabaseID: database, Filename: filename})
	check.NoError(t, err)
	t.Cleanup(func() { file.Body.Close() })
	return file
}

func TestADownloadIsTheFileAsStored(t *testing.T) {
	var stored bytes.Buffer
	z := gzip.NewWriter(&stored)
	_, _ = io.WriteString(z, "SELECT 1;\n")
	z.Close()
	file := open(t, brief(t), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip") // what a transport would undo
		w.Header().Set("Content-Length", strconv.Itoa(stored.Len()))
		_, _ = w.Write(stored.Bytes())
	})
	got, err := io.ReadAll(file.Body)
	if err != nil || !bytes.Equal(got, stored.Bytes()) || file.Size != int64(stored.Len()) {
		t.Errorf("got %d bytes of %d, size %d (%v)", len(got), stored.Len(), file.Size, err)
	}
}

func TestADownloadTakesNoMemoryOfItsSize(t *testing.T) {
	const size = 256 << 20
	chunk := make([]byte, 1<<20)
	file := open(t, brief(t), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(size))
		for range size / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.Copy(io.Discard, file.Body)
	runtime.ReadMemStats(&after)
	if err != nil || n != size {
		t.Fatalf("%d bytes (%v)", n, err)
	}
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 16<<20 {
		t.Errorf("allocated %d bytes for a file of %d", spent, size)
	}
}

func TestADownloadThatBreaksOffIsAnError(t *testing.T) {
	file := open(t, brief(t), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "only this")
	})
	if got, err := io.ReadAll(file.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestTheEndOfTheContextEndsADownload(t *testing.T) {
	ctx, cancel := context.WithCancel(brief(t))
	left := make(chan struct{})
	file := open(t, ctx, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(left)
	})
	cancel()
	if _, err := io.ReadAll(file.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-left // the agent is told
}

// How many run at a time is decided before, where whoever is not let in gets an answer: here nobody waits for others to end.
func TestNoDownloadWaitsForOthers(t *testing.T) {
	const many = 40
	agent := agentOf(t, newWire(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}).server(t))
	ctx := brief(t)
	for n := range many {
		file, err := agent.Open(ctx, command.OpenBackup{DatabaseID: database, Filename: filename})
		if err != nil {
			t.Fatalf("with %d open: %v", n, err)
		}
		defer file.Body.Close()
	}
}

func TestAFileOfUnknownLengthIsUnknown(t *testing.T) {
	w := newWire(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "chunked")
	})
	wantUnknown(t, calls["OpenBackup"](brief(t), agentOf(t, w.server(t))))
}
