package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/agent/server"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster"
)

const (
	secret   = "0123456789abcdef-secret"
	database = "11111111-1111-4111-8111-111111111111"
	filename = "20260301_120000.sql.gz"
)

// work stands in for the executor and the store.
type work struct {
	got      atomic.Pointer[protocol.Command]
	accounts atomic.Pointer[protocol.Accounts]
	refuse   string
	wait     chan struct{} // a command waits for it, where it is not nil
	began    chan struct{}
	content  string
	claimed  int64
}

var errRefused = errors.New("refused")

func (w *work) Execute(ctx context.Context, c protocol.Command) (json.RawMessage, error) {
	w.got.Store(&c)
	if w.wait != nil {
		close(w.began)
		<-w.wait
	}
	if w.refuse != "" {
		return nil, errRefused
	}
	return json.RawMessage(`{"a":1}`), ctx.Err()
}

func (w *work) Size(context.Context, id.DatabaseID) (int64, error) { return 42, nil }
func (w *work) SetAccounts(_ context.Context, a protocol.Accounts) error {
	w.accounts.Store(&a)
	return nil
}
func (w *work) InspectLogin(_ context.Context, q protocol.LoginQuestion) (protocol.LoginAnswer, error) {
	if w.refuse != "" {
		return protocol.LoginAnswer{}, errRefused
	}
	return protocol.LoginAnswer{Condition: "of " + q.Username}, nil
}
func (w *work) Room(context.Context, id.DatabaseID) error                    { return nil }
func (w *work) Delete(context.Context, id.DatabaseID, backup.Filename) error { return nil }
func (w *work) Programs() []protocol.Program {
	return []protocol.Program{{Name: "PgBouncer", Version: "PgBouncer 1.24.1", BelowFloor: true}}
}
func (w *work) Connections(context.Context) (int, error)        { return 83, nil }
func (w *work) Report(context.Context) (protocol.Health, error) { return protocol.Health{}, nil }
func (w *work) Open(context.Context, id.DatabaseID, backup.Filename) (io.ReadCloser, int64, error) {
	return io.NopCloser(strings.NewReader(w.content)), w.claimed, nil
}

type running struct {
	url    string
	client *http.Client
	log    *observer.ObservedLogs
	stop   context.CancelFunc
	ended  chan error
}

func start(t *testing.T, w *work) running {
	t.Helper()
	ca, err := cluster.OpenCA(filepath.Join(t.TempDir(), "ca"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := ca.Issue("agent", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	core, log := observer.New(zap.DebugLevel)
	s, err := server.New(server.Config{
		Certificates: []tls.Certificate{pair}, Secret: secret, Version: "v", Commands: w, Files: w, Health: w, Programs: w.Programs,
		Refusal: func(error) protocol.Refusal { return protocol.Refusal{Reason: w.refuse, Message: "m"} }, Log: zap.New(core),
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := running{url: "https://" + l.Addr().String(), log: log, stop: stop, ended: make(chan error, 1)}
	go func() { r.ended <- s.Serve(ctx, l) }()
	t.Cleanup(stop)
	r.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	return r
}

func (r running) do(t *testing.T, method, path, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	answer, err := r.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return answer.StatusCode, "broke off"
	}
	return answer.StatusCode, string(text)
}

const validQuestion = `{"databaseId":"d","username":"u","verifier":"SCRAM-SHA-256$x"}`

const validAccounts = `{"databases":[{"databaseId":"d","accountId":"a"}]}`

const valid = `{"kind":"database.ensure","operationId":"o","epoch":1,"step":"s","resource":"r","generation":1,` +
	`"payloadHash":"h","payload":{"verifier":"SCRAM-SHA-256$x"},"secrets":{"u":"p4ssw0rd"}}`

func TestEveryRouteButTheLivenessCheckNeedsTheSecret(t *testing.T) {
	r := start(t, &work{})
	if status, body := r.do(t, "GET", "/healthz", "", ""); status != http.StatusOK || body != `{"status":"ok"}` {
		t.Errorf("healthz: %d %s", status, body)
	}
	_, text := r.do(t, "GET", "/v1/capabilities", "Bearer "+secret, "")
	var known protocol.Capabilities
	if err := json.Unmarshal([]byte(text), &known); err != nil || len(known.Routes) != 10 || known.Version != "v" ||
		len(known.Programs) != 1 || !known.Programs[0].BelowFloor || known.Connections != 83 {
		t.Fatalf("%s %v", text, err)
	}
	for _, route := range known.Routes {
		method, path, _ := strings.Cut(route, " ")
		path = strings.NewReplacer("{id}", database, "{filename}", filename).Replace(path)
		if path == "/healthz" {
			continue
		}
		body := valid
		switch path {
		case "/v1/logins/inspect":
			body = validQuestion
		case "/v1/accounts":
			body = validAccounts
		}
		for _, token := range []string{
			"", "Bearer ", "Bearer wrong", "Bearer " + secret + "x", secret[:len(secret)-1], "Basic " + secret,
		} {
			if status, body := r.do(t, method, path, token, body); status != http.StatusUnauthorized || body != "" {
				t.Errorf("%s with %q: %d %s", route, token, status, body)
			}
		}
		if status, body := r.do(t, method, path, "Bearer "+secret, body); status >= 300 {
			t.Errorf("%s: %d %s", route, status, body)
		}
	}
}

func TestCommandsAreReadStrictly(t *testing.T) {
	w := &work{}
	r := start(t, w)
	for what, body := range map[string]string{
		"empty": "", "no object": "[]", "trailing": valid + "{}", "unknown field": strings.Replace(valid, `"step"`, `"stepp"`, 1),
		"other case": strings.Replace(valid, `"step"`, `"Step"`, 1),
		"twice":      strings.Replace(valid, `"epoch":1`, `"epoch":1,"epoch":2`, 1),
		"wrong type": strings.Replace(valid, `"epoch":1`, `"epoch":"1"`, 1), "too long": valid + strings.Repeat(" ", 1<<20),
		"twice in the payload": strings.Replace(valid, `{"verifier"`, `{"verifier":"","verifier"`, 1),
	} {
		status, answer := r.do(t, "POST", "/v1/commands", "Bearer "+secret, body)
		if status != http.StatusBadRequest || !strings.Contains(answer, protocol.ReasonInvalid) {
			t.Errorf("%s: %d %s", what, status, answer)
		}
	}
	if w.got.Load() != nil {
		t.Error("one of them was carried out")
	}
	status, answer := r.do(t, "POST", "/v1/commands", "Bearer "+secret, valid)
	if status != http.StatusOK || answer != `{"result":{"a":1}}` {
		t.Errorf("%d %s", status, answer)
	}
	if got := w.got.Load(); got == nil || string(got.Payload) != `{"verifier":"SCRAM-SHA-256$x"}` || got.Secrets["u"] != "p4ssw0rd" {
		t.Errorf("got %+v", got)
	}
}

func TestLoginIsInspected(t *testing.T) {
	r := start(t, &work{})
	status, body := r.do(t, "POST", "/v1/logins/inspect", "Bearer "+secret, validQuestion)
	if status != http.StatusOK || body != `{"condition":"of u"}` {
		t.Errorf("%d %s", status, body)
	}
	for _, bad := range []string{"", "[]", `{"username":"u","password":"p4ssw0rd"}`, validQuestion + "{}"} {
		if status, body := r.do(t, "POST", "/v1/logins/inspect", "Bearer "+secret, bad); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, status, body)
		}
	}
	r = start(t, &work{refuse: protocol.ReasonNotFound})
	if status, _ := r.do(t, "POST", "/v1/logins/inspect", "Bearer "+secret, validQuestion); status != http.StatusNotFound {
		t.Errorf("a database that is not there: %d", status)
	}
}

func TestAccountsAreTold(t *testing.T) {
	w := &work{}
	r := start(t, w)
	for _, bad := range []string{"", "[]", `{"databases":[{"databaseId":"d"}],"all":true}`, validAccounts + "{}"} {
		if status, body := r.do(t, "PUT", "/v1/accounts", "Bearer "+secret, bad); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, status, body)
		}
	}
	if w.accounts.Load() != nil {
		t.Error("one of them was taken")
	}
	status, body := r.do(t, "PUT", "/v1/accounts", "Bearer "+secret, validAccounts)
	if got := w.accounts.Load(); status != http.StatusNoContent || got == nil || got.Databases[0].AccountID != "a" {
		t.Errorf("%d %s, %+v", status, body, got)
	}
}

func TestRefusalsHaveTheirStatus(t *testing.T) {
	for reason, want := range map[string]int{
		protocol.ReasonStale: 409, protocol.ReasonFenced: 409, protocol.ReasonConflict: 409, protocol.ReasonClosed: 409,
		protocol.ReasonCompleted: 409, protocol.ReasonNameTaken: 409, protocol.ReasonNotFound: 404, protocol.ReasonStorageFull: 507,
		protocol.ReasonUnavailable: 503, protocol.ReasonNoRoute: 404, protocol.ReasonInvalid: 400, protocol.ReasonFailed: 422,
		protocol.ReasonConnectRequired: 409, protocol.ReasonDatabaseClosed: 409,
	} {
		r := start(t, &work{refuse: reason})
		status, body := r.do(t, "POST", "/v1/commands", "Bearer "+secret, valid)
		if status != want || !strings.Contains(body, `"reason":"`+reason+`"`) {
			t.Errorf("%s: %d %s", reason, status, body)
		}
	}
}

// The cause of a refusal stands in this log only; whoever has the operation's ID from another finds it there.
func TestRefusalIsLoggedWithItsOperation(t *testing.T) {
	r := start(t, &work{refuse: protocol.ReasonUnavailable})
	r.do(t, "POST", "/v1/commands", "Bearer "+secret, valid)
	r.stop()
	<-r.ended
	lines := r.log.FilterMessage("refused").All()
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	var sent protocol.Command
	if err := json.Unmarshal([]byte(valid), &sent); err != nil {
		t.Fatal(err)
	}
	said := lines[0].ContextMap()
	if sent.OperationID == "" || said["operationId"] != sent.OperationID || said["resource"] != sent.Resource ||
		said["error"] == "" {
		t.Errorf("%v", said)
	}
}

func TestLogHoldsNoSecret(t *testing.T) {
	r := start(t, &work{refuse: protocol.ReasonFailed})
	r.do(t, "POST", "/v1/commands", "Bearer "+secret, valid)
	r.do(t, "POST", "/v1/commands", "Bearer "+secret, valid+"}")
	r.do(t, "POST", "/v1/commands", "Bearer stolen", valid)
	r.stop()
	<-r.ended
	var all bytes.Buffer
	for _, e := range r.log.All() {
		text, err := json.Marshal([]any{e.Message, e.ContextMap()})
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	if !strings.Contains(all.String(), "database.ensure") {
		t.Errorf("the log says nothing: %s", all.String())
	}
	for _, word := range []string{secret, "p4ssw0rd", "SCRAM", "stolen"} {
		if strings.Contains(all.String(), word) {
			t.Errorf("the log has %q", word)
		}
	}
}

func TestFileThatBreaksOffBreaksTheConnection(t *testing.T) {
	path := "/v1/databases/" + database + "/backups/" + filename
	whole := start(t, &work{content: strings.Repeat("x", 3<<20), claimed: 3 << 20})
	if status, body := whole.do(t, "GET", path, "Bearer "+secret, ""); status != http.StatusOK || len(body) != 3<<20 {
		t.Errorf("%d, %d bytes", status, len(body))
	}
	short := start(t, &work{content: strings.Repeat("x", 3<<20), claimed: 4 << 20})
	if _, body := short.do(t, "GET", path, "Bearer "+secret, ""); body != "broke off" {
		t.Errorf("a part passes for the whole: %d bytes", len(body))
	}
	for _, bad := range []string{"x", "..%2f..%2fpasswd", "20261301_120000.sql.gz"} {
		status, _ := whole.do(t, "GET", "/v1/databases/"+database+"/backups/"+bad, "Bearer "+secret, "")
		if status != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, status)
		}
	}
}

// A client that gives up does not stop its command, and a shutdown waits for it.
func TestCommandGoesOnWithoutItsClient(t *testing.T) {
	w := &work{wait: make(chan struct{}), began: make(chan struct{})}
	r := start(t, w)
	ctx, giveUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/commands", strings.NewReader(valid))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if answer, err := r.client.Do(req); err == nil {
			answer.Body.Close()
		}
	}()
	<-w.began
	giveUp()
	<-gone
	r.stop()
	select {
	case err := <-r.ended:
		t.Fatal("the server did not wait for the command: ", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(w.wait)
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
}

func TestShortSecretIsRefused(t *testing.T) {
	if _, err := server.New(server.Config{Secret: "short", Log: zap.NewNop()}); err == nil {
		t.Error("accepted")
	}
}
