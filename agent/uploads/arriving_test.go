package uploads_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// coming is a chunk that a client has begun to send.
type coming struct {
	body *io.PipeWriter
	said chan string // the answer, or how it ended
}

// begun sends the beginning of a chunk, and waits until the agent has it.
func begun(t *testing.T, s *agenttest.Stack, u agenttest.Upload, text string) coming {
	t.Helper()
	path, _, err := protocol.WriteQuestion(u.Chunk(0))
	check.NoError(t, err)
	from, to := io.Pipe()
	r := check.Must(http.NewRequest(http.MethodPatch, "https://"+s.Config.Listen+path, from))(t)
	r.Header.Set("Authorization", "Bearer "+agenttest.Secret)
	r.Header.Set(protocol.Header, strconv.Itoa(command.Protocol))
	r.ContentLength = int64(len(u.Data))
	c := coming{to, make(chan string, 1)}
	go func() {
		answer, err := s.Client.Do(r)
		if err != nil {
			c.said <- "broken: " + err.Error()
			return
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body) // what is there says enough
		c.said <- fmt.Sprint(answer.StatusCode, " ", string(text))
	}()
	check.Must(io.WriteString(to, text))(t)
	check.Eventually(t, "the chunk does not come", func() bool {
		got, reason := s.Ask(t, u.Asking())
		return reason == "" && got.ReceivedBytes == int64(len(text))
	})
	return c
}

// A chunk that hangs keeps nobody from dropping the upload, and a second one is not let in meanwhile.
func TestDropBreaksOffAChunk(t *testing.T) {
	s := agenttest.Shared(t)
	u := s.Made(t, database.SingleLogin).Upload([]byte("0123456789"))
	s.Ask(t, u.Open(time.Hour))
	c := begun(t, s, u, "0123")
	defer c.body.Close()
	if _, reason := s.Ask(t, u.Chunk(4), u.Data[4:]...); reason != command.ReasonBusy {
		t.Errorf("a second chunk: %q", reason)
	}
	began := time.Now()
	if _, reason := s.Ask(t, u.Drop()); reason != "" {
		t.Error(reason)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the drop took %s", took)
	}
	if said := <-c.said; !strings.Contains(said, string(command.ReasonNotFound)) && !strings.HasPrefix(said, "broken") {
		t.Errorf("the chunk: %s", said)
	}
	if left := s.UploadsLeft(t, u); left != "" {
		t.Error(left)
	}
}

// standsStill has chunks ended whose sender falls silent, or brings a byte now and then. What has come is kept, and another chunk
// goes on from there.
func standsStill(t *testing.T, s *agenttest.Stack, w agenttest.Wanted) {
	s.Config.ArrivalTime = 500 * time.Millisecond
	defer func() { s.Config.ArrivalTime = 0 }()
	defer s.Child(t, "").Kill()
	for _, trickles := range []bool{false, true} {
		u := w.Upload(bytes.Repeat([]byte{'x'}, 1000))
		s.Ask(t, u.Open(time.Hour))
		began, c := time.Now(), begun(t, s, u, "xxxx")
		defer c.body.Close()
		for trickles && len(c.said) == 0 {
			_, err := io.WriteString(c.body, "x")
			trickles = err == nil
			time.Sleep(20 * time.Millisecond)
		}
		if said := <-c.said; !strings.Contains(said, string(command.ReasonUnavailable)) && !strings.HasPrefix(said, "broken") {
			t.Errorf("the chunk: %s", said)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("its end took %s", took)
		}
		got, reason := s.Ask(t, u.Asking())
		if kept := int(got.ReceivedBytes); reason != "" || kept < 4 {
			t.Fatalf("%d bytes are kept, %s", kept, reason)
		}
		got, reason = s.Ask(t, u.Chunk(int(got.ReceivedBytes)), u.Data[got.ReceivedBytes:]...)
		if reason != "" || got.ReceivedBytes != 1000 {
			t.Errorf("the rest: %+v %s", got, reason)
		}
		s.Ask(t, u.Drop())
	}
}
