package agentclient_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/ports"
)

const patience = 300 * time.Millisecond

// A frozen agent holds a download no longer than it may: neither before its answer nor in the middle of it.
func TestAnAgentThatHangsEndsADownload(t *testing.T) {
	for name, status := range map[string]int{
		"before its answer": 0, "in the middle of the file": http.StatusOK, "in the middle of a refusal": http.StatusNotFound,
	} {
		t.Run(name, func(t *testing.T) {
			agent := check.Must(newFleet(t, agentclient.Options{DownloadWait: patience}).Agent(newWire(t, freeze(status)).server(t)))(t)
			began := time.Now()
			file, err := agent.Open(brief(t), command.OpenBackup{DatabaseID: database, Filename: filename})
			if err == nil {
				defer file.Body.Close()
				_, err = io.ReadAll(file.Body)
			}
			wantNoPatience(t, began, err)
			wantUnknown(t, err)
		})
	}
}

// Nor does it hold any other call.
func TestAnAgentThatHangsEndsACall(t *testing.T) {
	for name, status := range map[string]int{
		"before its answer": 0, "in the middle of its answer": http.StatusOK, "in the middle of a refusal": http.StatusConflict,
	} {
		t.Run(name, func(t *testing.T) {
			agent := check.Must(newFleet(t, agentclient.Options{AnswerWait: patience}).Agent(newWire(t, freeze(status)).server(t)))(t)
			began := time.Now()
			_, err := ports.Ask(brief(t), agent, command.DatabaseSize{DatabaseID: database})
			wantNoPatience(t, began, err)
			wantUnknown(t, err)
		})
	}
}

// freeze sends a part of an answer, or nothing where the status is 0, and no more.
func freeze(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if status != 0 {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "only this")
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}
}

func wantNoPatience(t *testing.T, began time.Time, err error) {
	t.Helper()
	if took := time.Since(began); err == nil || took > 10*patience {
		t.Errorf("after %s: %v", took, err)
	}
}

// While the customer has its turn, the agent's time stands still.
func TestAnAgentDoesNotAnswerForTheCustomer(t *testing.T) {
	const size = 1 << 20
	w := newWire(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1048576")
		_, _ = w.Write(make([]byte, size))
	})
	agent := check.Must(newFleet(t, agentclient.Options{DownloadWait: patience}).Agent(w.server(t)))(t)
	file := check.Must(agent.Open(brief(t), command.OpenBackup{DatabaseID: database, Filename: filename}))(t)
	defer file.Body.Close()
	for range 2 {
		check.Must(io.CopyN(io.Discard, file.Body, size/4))(t)
		time.Sleep(2 * patience)
	}
	if n, err := io.Copy(io.Discard, file.Body); n != size/2 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
