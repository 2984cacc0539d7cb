package serve

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/download"
	"github.com/pgherd/pgherd/core/fault"
)

const (
	dump     = thing + "/dump"
	tenGiB   = "Content-Length: 10737418240"
	gzipBody = "Content-Type: application/gzip"
)

// Whoever may not send a dump, or not such a one, hears so before a byte of it.
func TestADumpIsRefusedByItsHeader(t *testing.T) {
	st := open(t)
	for name, c := range map[string]struct {
		request string
		status  int
		want    fault.Code
	}{
		"no key":            {head("PUT", dump, "", tenGiB, gzipBody), 401, fault.Unauthorized},
		"too often":         {head("PUT", dump, "spent", tenGiB, gzipBody), 429, fault.RateLimited},
		"another's":         {head("PUT", "/api/v1/things/"+foreignID+"/dump", anyKey, tenGiB, gzipBody), 404, fault.DatabaseNotFound},
		"another type":      {head("PUT", dump, anyKey, tenGiB, jsonType), 415, fault.UnsupportedMediaType},
		"another coding":    {head("PUT", dump, anyKey, tenGiB, gzipBody, "Content-Encoding: gzip"), 415, fault.UnsupportedMediaType},
		"of unknown length": {head("PUT", dump, anyKey, gzipBody, "Transfer-Encoding: chunked"), 411, fault.LengthRequired},
	} {
		t.Run(name, func(t *testing.T) {
			l := st.dial(t)
			l.say(c.request)
			l.hear(atOnce).expect(t, c.status, c.want)
		})
	}
	if n := st.handled.Load(); n != 0 {
		t.Errorf("%d were handled", n)
	}
}

// pieceEvery is long beside what a busy machine takes to come back for more: what has come when the server asks for it, it has
// not waited for, and only that counts.
const pieceEvery = 100 * time.Millisecond

// A sender that falls behind is cut off, however fast it was before: what came at once buys no time.
func TestASlowSenderIsCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		first int // bytes sent at once
		piece int // then so many at a time
	}{
		"sends nothing": {0, 0}, "sends a byte at a time": {0, 1}, "sends an eighth": {0, 50 << 10},
		"sends much, then nothing": {6 << 20, 0}, "sends much, then an eighth": {6 << 20, 50 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t, func(c *Config) { c.Limits.Upload = download.Rule{Rate: 4 << 20, Window: 300 * time.Millisecond} })
			l, over := st.dial(t), make(chan struct{})
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				l.say(head("PUT", dump, anyKey, tenGiB) + strings.Repeat("x", c.first))
				for {
					select {
					case <-over:
						return
					case <-time.After(pieceEvery):
						l.say(strings.Repeat("x", c.piece))
					}
				}
			}()
			defer func() { close(over); <-sent }()
			l.hear(cutBy).expect(t, 408, fault.RequestTimeout)
		})
	}
}

// How long whoever takes it lets it wait is not the sender's matter.
func TestTheSenderDoesNotAnswerForTheTaker(t *testing.T) {
	st := open(t, func(c *Config) { c.Limits.Upload = download.Rule{Rate: 4 << 20, Window: 200 * time.Millisecond} })
	st.take = func(body io.Reader) (n int64, err error) {
		for err == nil {
			time.Sleep(300 * time.Millisecond)
			var more int64
			more, err = io.CopyN(io.Discard, body, 1000)
			n += more
		}
		if err == io.EOF {
			err = nil
		}
		return n, err
	}
	l := st.dial(t)
	l.say(head("PUT", dump, anyKey, "Content-Length: 5000") + strings.Repeat("x", 5000))
	if r := l.hear(cutBy); r.text != `{"n":5000}` {
		t.Errorf("%d %s", r.StatusCode, r.text)
	}
}

func TestADumpTakesNoMemoryOfItsSize(t *testing.T) {
	const size = 64 << 20
	st := open(t)
	l, piece := st.dial(t), make([]byte, 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l.say(head("PUT", dump, anyKey, fmt.Sprintf("Content-Length: %d", size)))
	for range size / len(piece) {
		_, _ = l.Conn.Write(piece) // if it fails, there is no answer
	}
	r := l.hear(cutBy)
	runtime.ReadMemStats(&after)
	if r.text != fmt.Sprintf(`{"n":%d}`, size) {
		t.Errorf("%d %s", r.StatusCode, r.text)
	}
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 8<<20 {
		t.Errorf("allocated %d bytes for a dump of %d", spent, size)
	}
}
