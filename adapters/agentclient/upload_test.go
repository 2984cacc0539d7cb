package agentclient_test

import (
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/ports"
)

var chunk = command.Chunk{DatabaseID: database, UploadID: "44444444-4444-4444-8444-444444444444", Offset: 7}

// body counts what is read of it.
type body struct {
	io.Reader
	read atomic.Int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read.Add(int64(n))
	return n, err
}

// zeros are bytes without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestAChunkTakesNoMemoryOfItsSize(t *testing.T) {
	const size = 256 << 20
	w := newWire(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil || n != size || r.ContentLength != size || !strings.HasSuffix(r.URL.Path, "/7") {
			t.Errorf("%d bytes of %d, %v", n, r.ContentLength, err)
		}
		answer(http.StatusOK, command.Uploaded{ReceivedBytes: 7 + size})(w, r)
	})
	agent := agentOf(t, w.server(t))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	now, err := ports.Send(brief(t), agent, chunk, size, zeros{})
	runtime.ReadMemStats(&after)
	if err != nil || now.ReceivedBytes != 7+size {
		t.Fatalf("%+v, %v", now, err)
	}
	if spent := after.TotalAlloc - before.TotalAlloc; spent > size/4 { // with the race detector, TLS allocates for each record
		t.Errorf("allocated %d bytes for a chunk of %d", spent, size)
	}
}

// The agent is asked before the first byte leaves: what it refuses costs the sender nothing, and can be sent again.
func TestARefusedChunkIsNotRead(t *testing.T) {
	w := newWire(t, refuse(http.StatusConflict, command.ReasonConflict))
	sent := &body{Reader: zeros{}}
	_, err := ports.Send(brief(t), agentOf(t, w.server(t)), chunk, 1<<30, sent)
	wantRefusal(t, err, command.ReasonConflict)
	if n := sent.read.Load(); n != 0 {
		t.Errorf("%d bytes were read", n)
	}
}

// A frozen agent holds a chunk no longer than it may, and nothing of it is read afterwards.
func TestAnAgentThatHangsEndsAChunk(t *testing.T) {
	for name, taken := range map[string]int64{"before the first byte": 0, "in the middle": 1 << 20, "after the last": 8 << 20} {
		t.Run(name, func(t *testing.T) {
			over := make(chan struct{})
			w := newWire(t, func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.CopyN(io.Discard, r.Body, taken)
				<-over
			})
			t.Cleanup(func() { close(over) })
			agent := check.Must(newFleet(t, agentclient.Options{DownloadWait: patience}).Agent(w.server(t)))(t)
			began, sent := time.Now(), &body{Reader: zeros{}}
			_, err := ports.Send(brief(t), agent, chunk, 8<<20, sent)
			wantNoPatience(t, began, err)
			wantUnknown(t, err)
			read := sent.read.Load()
			time.Sleep(patience)
			if more := sent.read.Load(); more != read {
				t.Errorf("%d bytes were read afterwards", more-read)
			}
		})
	}
}

var errSender = errors.New("the sender has gone")

// failing brings some bytes and then an error, after a while in which the agent has nothing to do.
type failing struct{ left int }

func (f *failing) Read(p []byte) (int, error) {
	if f.left == 0 {
		time.Sleep(2 * patience)
		return 0, errSender
	}
	n := min(f.left, len(p))
	f.left -= n
	return n, nil
}

// What ends the body ends the chunk, and shows; the agent does not answer for how long that takes.
func TestAChunkWhoseSenderGoes(t *testing.T) {
	got := make(chan int64, 1)
	w := newWire(t, func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got <- n
	})
	agent := check.Must(newFleet(t, agentclient.Options{DownloadWait: patience}).Agent(w.server(t)))(t)
	_, err := ports.Send(brief(t), agent, chunk, 1<<20, &failing{left: 100_000})
	wantUnknown(t, err)
	if !errors.Is(err, errSender) {
		t.Errorf("%v does not say why", err)
	}
	if n := <-got; n != 100_000 {
		t.Errorf("%d bytes came", n)
	}
}
