package agentclient_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/core/command"
	coredb "github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/ports"
)

const (
	secret   = "s3cret-of-the-agent"
	database = id.DatabaseID("11111111-1111-4111-8111-111111111111")
	filename = "20261121_065347.sql.gz"
)

var fence = ports.Fence{OperationID: "22222222-2222-4222-8222-222222222222", Epoch: 3}

// wire is an agent's HTTPS side with a handler of the test's own.
type wire struct {
	*httptest.Server
	requests atomic.Int64
	conns    atomic.Int64
}

func newWire(t *testing.T, handler http.HandlerFunc) *wire {
	t.Helper()
	w := &wire{}
	w.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.requests.Add(1)
		handler(rw, r)
	}))
	w.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.Config.ConnState = countNew(&w.conns)
	w.StartTLS()
	t.Cleanup(func() {
		w.CloseClientConnections()
		w.Server.Close()
	})
	return w
}

func (w *wire) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.Certificate().Raw}))
}

// server is w as an operator registers it.
func (w *wire) server(t *testing.T) server.Server {
	t.Helper()
	s := server.Server{ID: "33333333-3333-4333-8333-333333333333", AgentURL: w.URL, CA: w.ca()}
	s.SealedSecret = sealSecret(t, s, secret)
	return s
}

func sealSecret(t *testing.T, s server.Server, text string) []byte {
	t.Helper()
	return check.Must(fakebox.New().Seal([]byte(text), s.SecretContext()))(t)
}

func newFleet(t *testing.T, o agentclient.Options) *agentclient.Fleet {
	t.Helper()
	f := agentclient.New(fakebox.New(), o)
	t.Cleanup(f.Close)
	return f
}

func agentOf(t *testing.T, s server.Server) ports.Agent {
	t.Helper()
	return check.Must(newFleet(t, agentclient.Options{}).Agent(s))(t)
}

// brief ends a test that would otherwise hang.
func brief(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), check.Patience)
	t.Cleanup(cancel)
	return ctx
}

func answer(status int, body any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		text, ok := body.(string)
		if !ok {
			raw, err := json.Marshal(body)
			if err != nil {
				panic(err)
			}
			text = string(raw)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

func refuse(status int, reason command.Reason) http.HandlerFunc {
	return answer(status, command.Refuse(reason, "because"))
}

// hangUp breaks the connection after the request has been read.
func hangUp(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	panic(http.ErrAbortHandler)
}

// calls is everything that an agent can be told and asked.
var calls = map[string]func(ctx context.Context, a ports.Agent) error{
	"EnsureDatabase": telling(command.EnsureDatabase{DatabaseID: database, Name: "orders"}),
	"SetAccess":      telling(command.SetAccess{DatabaseID: database, Generation: 2}),
	"SetAllowlist":   telling(command.SetAllowlist{DatabaseID: database, Generation: 2}),
	"ChangeLogin":    telling(command.ChangeLogin{DatabaseID: database, Username: "orders", Want: role.Rotation}),
	"Backup":         telling(command.Backup{DatabaseID: database, Filename: filename}),
	"Close":          func(ctx context.Context, a ports.Agent) error { return ports.Close(ctx, a, fence) },

	"DatabaseSize":    asking(command.DatabaseSize{DatabaseID: database}),
	"InspectLogin":    asking(command.InspectLogin{DatabaseID: database, Username: "orders"}),
	"ReadOutcome":     asking(command.ReadOutcome{DatabaseID: database, Username: "orders"}),
	"SetAccounts":     asking(command.SetAccounts{Databases: []coredb.Ownership{{DatabaseID: database}}}),
	"RoomForBackup":   asking(command.RoomForBackup{DatabaseID: database}),
	"DeleteBackup":    asking(command.DeleteBackup{DatabaseID: database, Filename: filename}),
	"AskCapabilities": asking(command.AskCapabilities{}),
	"OpenBackup":      opens(command.OpenBackup{DatabaseID: database, Filename: filename}),
	"Chunk":           sends,
	"OpenRest":        opens(command.OpenRest{DatabaseID: database, Filename: filename, Offset: 5}),
	"OpenManifest":    opens(command.OpenManifest{DatabaseID: database, Filename: filename}),
}

func sends(ctx context.Context, a ports.Agent) error {
	_, err := ports.Send(ctx, a, chunk, 5, strings.NewReader("bytes"))
	return err
}

func opens(q command.Question) func(context.Context, ports.Agent) error {
	return func(ctx context.Context, a ports.Agent) error {
		file, err := a.Open(ctx, q)
		if err == nil {
			file.Body.Close()
		}
		return err
	}
}

func telling[R any](c command.Returning[R]) func(context.Context, ports.Agent) error {
	return func(ctx context.Context, a ports.Agent) error {
		_, err := ports.Do(ctx, a, fence, c)
		return err
	}
}

func asking[R any](q command.Asking[R]) func(context.Context, ports.Agent) error {
	return func(ctx context.Context, a ports.Agent) error {
		_, err := ports.Ask(ctx, a, q)
		return err
	}
}

// eachCall runs fn for every method against a wire of its own.
func eachCall(t *testing.T, handler http.HandlerFunc, check func(t *testing.T, w *wire, err error)) {
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			w := newWire(t, handler)
			check(t, w, call(brief(t), agentOf(t, w.server(t))))
		})
	}
}

func wantUnreachable(t *testing.T, err error) {
	t.Helper()
	wantNoSecret(t, err)
	if !errors.Is(err, ports.ErrAgentUnreachable) {
		t.Errorf("got %v, want ErrAgentUnreachable", err)
	}
}

func wantUnknown(t *testing.T, err error) {
	t.Helper()
	wantNoSecret(t, err)
	var no *command.Refusal
	if err == nil || errors.Is(err, ports.ErrAgentUnreachable) || errors.As(err, &no) {
		t.Errorf("got %v, want an unknown outcome", err)
	}
}

func wantRefusal(t *testing.T, err error, reason command.Reason) {
	t.Helper()
	wantNoSecret(t, err)
	if !command.RefusedFor(err, reason) || errors.Is(err, ports.ErrAgentUnreachable) {
		t.Errorf("got %v, want a refusal for %s", err, reason)
	}
}

func wantNoSecret(t *testing.T, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("the error shows the secret: %v", err)
	}
}

func wantRequests(t *testing.T, w *wire, n int64) {
	t.Helper()
	if got := w.requests.Load(); got != n {
		t.Errorf("the agent saw %d requests, want %d", got, n)
	}
}
