package agentclient_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/pgherd/pgherd/adapters/agentclient"
)

const downloadWait = 300 * time.Millisecond

// A frozen agent holds a download no longer than it may: neither before its answer nor in the middle of the file.
func TestAnAgentThatHangsEndsADownload(t *testing.T) {
	for name, begun := range map[string]bool{"before its answer": false, "in the middle": true} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t, func(w http.ResponseWriter, r *http.Request) {
				if begun {
					w.Header().Set("Content-Length", "1000")
					_, _ = io.WriteString(w, "only this")
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
			})
			agent, err := newFleet(t, agentclient.Options{DownloadWait: downloadWait}).Agent(w.record(t))
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			file, err := agent.OpenBackup(brief(t), database, filename)
			if begun {
				if err != nil {
					t.Fatal(err)
				}
				defer file.Body.Close()
				_, err = io.ReadAll(file.Body)
			}
			if took := time.Since(began); err == nil || took > 10*downloadWait {
				t.Errorf("after %s: %v", took, err)
			}
		})
	}
}

// While the customer has its turn, the agent's time stands still.
func TestAnAgentDoesNotAnswerForTheCustomer(t *testing.T) {
	const size = 1 << 20
	w := newWire(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1048576")
		_, _ = w.Write(make([]byte, size))
	})
	agent, err := newFleet(t, agentclient.Options{DownloadWait: downloadWait}).Agent(w.record(t))
	if err != nil {
		t.Fatal(err)
	}
	file, err := agent.OpenBackup(brief(t), database, filename)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Body.Close()
	for range 2 {
		if _, err := io.CopyN(io.Discard, file.Body, size/4); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * downloadWait)
	}
	if n, err := io.Copy(io.Discard, file.Body); n != size/2 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
