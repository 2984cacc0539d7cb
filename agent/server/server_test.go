package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/agent/server"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/hosts/cluster"
)

const (
	secret   = "0123456789abcdef-secret"
	database = "11111111-1111-4111-8111-111111111111"
	filename = "20260301_120000.sql.gz"
)

// work stands in for the ledger and the store.
type work struct {
	got      atomic.Pointer[protocol.Command]
	accounts atomic.Pointer[command.SetAccounts]
	refuse   command.Reason
	idle     error         // why the agent is not in charge
	failing  error         // of PostgreSQL
	wait     chan struct{} // a command waits for it, where it is not nil
	began    chan struct{}
	content  string
	claimed  int64
	accepted atomic.Pointer[[]string] // nil: secret alone
}

func (w *work) secrets() []string {
	if list := w.accepted.Load(); list != nil {
		return *list
	}
	return []string{secret}
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
	if c.Kind == "backup.run" {
		return json.RawMessage(`{"state":"` + c.Step + `"}`), nil
	}
	return json.RawMessage(`{"a":1}`), ctx.Err()
}

func (w *work) accountsTold(_ context.Context, q command.SetAccounts) (none command.None, err error) {
	w.accounts.Store(&q)
	return none, nil
}
func (w *work) inspect(_ context.Context, q command.InspectLogin) (command.LoginState, error) {
	if w.refuse != "" {
		return command.LoginState{}, errRefused
	}
	return command.LoginState{Condition: command.LoginCondition("of " + q.Username)}, nil
}
func (w *work) Programs() []command.Program {
	return []command.Program{{Name: "PgBouncer", Version: "PgBouncer 1.24.1", BelowFloor: true}}
}
func (w *work) Connections(context.Context) (int, error)         { return 83, w.failing }
func (w *work) Installation(context.Context) (string, error)     { return "i", nil }
func (w *work) CollectsStatements(context.Context) (bool, error) { return true, nil }
func (w *work) Report() protocol.Health {
	return protocol.Health{Reasons: []protocol.HealthReason{{Code: "not_initialized", Message: "m\n"}, {Code: "clients_waiting"}}}
}
func (w *work) ReportWithClients(context.Context) protocol.Health { return w.Report() }
func (w *work) open(context.Context, command.OpenBackup) (io.ReadCloser, int64, error) {
	return io.NopCloser(strings.NewReader(w.content)), w.claimed, nil
}
func (w *work) inCharge() error { return w.idle }

func (w *work) metrics() http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write([]byte("up 1\n")) })
}

func (w *work) questions() []server.Question {
	return []server.Question{
		server.Answering(func(context.Context, command.DatabaseSize) (command.Size, error) { return command.Size{Bytes: 42}, nil }),
		server.Answering(func(context.Context, command.RoomForBackup) (none command.None, err error) { return none, nil }),
		server.Answering(func(context.Context, command.DeleteBackup) (none command.None, err error) { return none, nil }),
		server.Answering(w.accountsTold), server.Answering(w.inspect), server.Opening("application/gzip", w.open),
	}
}

func (w *work) refusal(err error) *command.Refusal {
	var no *command.Refusal
	if errors.As(err, &no) {
		return no
	}
	return command.Refuse(w.refuse, "m")
}

type running struct {
	server *server.Server
	url    string
	client *http.Client
	log    *observer.ObservedLogs
	stop   context.CancelFunc
	ended  chan error
}

func start(t *testing.T, w *work) running {
	t.Helper()
	ca := check.Must(cluster.OpenCA(filepath.Join(t.TempDir(), "ca")))(t)
	files := check.Must(ca.Issue("agent", "127.0.0.1"))(t)
	pair := check.Must(tls.LoadX509KeyPair(files.CertFile, files.KeyFile))(t)
	core, log := observer.New(zap.DebugLevel)
	s, err := server.New(server.Config{
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil },
		Secrets:     w.secrets, Version: "v", Commands: w, Questions: w.questions(),
		Health: w, Metrics: w.metrics(), Programs: w.Programs, InCharge: w.inCharge, Confirmed: w.inCharge,
		PoolerAnswers: func() bool { return true },
		Refusal:       w.refusal, Log: zap.New(core),
	})
	check.NoError(t, err)
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, stop := context.WithCancel(context.Background())
	r := running{server: s, url: "https://" + l.Addr().String(), log: log, stop: stop, ended: make(chan error, 1)}
	go func() { r.ended <- s.Serve(ctx, l) }()
	t.Cleanup(stop)
	r.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	return r
}

func (r running) do(t *testing.T, method, path, token, body string) (int, string) {
	t.Helper()
	return r.speaking(t, strconv.Itoa(command.Protocol), method, path, token, body)
}

// speaking sends a request of a protocol.
func (r running) speaking(t *testing.T, protocolOf, method, path, token, body string) (int, string) {
	t.Helper()
	req := check.Must(http.NewRequest(method, r.url+path, strings.NewReader(body)))(t)
	req.Header.Set(protocol.Header, protocolOf)
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

var validQuestion = `{"databaseId":"` + database + `","username":"u","verifier":"SCRAM-SHA-256$4096:c2FsdA==$` +
	strings.Repeat("a", 44) + ":" + strings.Repeat("b", 44) + `"}`

const validAccounts = `{"databases":[{"databaseId":"` + database + `","accountId":"` + database + `"}]}`

const valid = `{"kind":"database.ensure","operationId":"o","epoch":1,"step":"s","resource":"r","generation":1,` +
	`"payloadHash":"h","payload":{"verifier":"SCRAM-SHA-256$x"},"secrets":{"u":"p4ssw0rd"}}`

func TestEveryRouteButTheLivenessCheckNeedsTheSecret(t *testing.T) {
	r := start(t, &work{})
	if status, body := r.do(t, "GET", "/healthz", "", ""); status != http.StatusOK || body != `{"status":"ok"}` {
		t.Errorf("healthz: %d %s", status, body)
	}
	_, text := r.do(t, "GET", "/v1/capabilities", "Bearer "+secret, "")
	var known command.Capabilities
	if err := json.Unmarshal([]byte(text), &known); err != nil || len(known.Routes) != 11 || known.Version != "v" ||
		known.Protocol != command.Protocol ||
		len(known.Programs) != 1 || !known.Programs[0].BelowFloor || known.Connections != 83 || known.Installation != "i" ||
		!known.SlowQueries ||
		known.State != (command.ServerState{InCharge: true, Postgres: true, PgBouncer: true}) ||
		!slices.Equal(known.Reasons, []string{"not_initialized: m"}) {
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
		"empty": "", "no object": "[]", "trailing": valid + "{}",
		"twice":      strings.Replace(valid, `"epoch":1`, `"epoch":1,"epoch":2`, 1),
		"wrong type": strings.Replace(valid, `"epoch":1`, `"epoch":"1"`, 1), "too long": valid + strings.Repeat(" ", 1<<20),
		"twice in the payload": strings.Replace(valid, `{"verifier"`, `{"verifier":"","verifier"`, 1),
		"unknown member":       strings.Replace(valid, `"step"`, `"stepp"`, 1),
		"other case":           strings.Replace(valid, `"step"`, `"Step"`, 1),
	} {
		status, answer := r.do(t, "POST", "/v1/commands", "Bearer "+secret, body)
		if status != http.StatusBadRequest || !strings.Contains(answer, string(command.ReasonInvalid)) {
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
	for _, bad := range []string{"", "[]", `{"username":"u"}`, validQuestion + "{}"} {
		if status, body := r.do(t, "POST", "/v1/logins/inspect", "Bearer "+secret, bad); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, status, body)
		}
	}
	r = start(t, &work{refuse: command.ReasonNotFound})
	if status, _ := r.do(t, "POST", "/v1/logins/inspect", "Bearer "+secret, validQuestion); status != http.StatusNotFound {
		t.Errorf("a database that is not there: %d", status)
	}
}

func TestAccountsAreTold(t *testing.T) {
	w := &work{}
	r := start(t, w)
	for _, bad := range []string{"", "[]", `{"databases":[{"databaseId":"d"}]}`, validAccounts + "{}"} {
		if status, body := r.do(t, "PUT", "/v1/accounts", "Bearer "+secret, bad); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, status, body)
		}
	}
	if w.accounts.Load() != nil {
		t.Error("one of them was taken")
	}
	status, body := r.do(t, "PUT", "/v1/accounts", "Bearer "+secret, validAccounts)
	if got := w.accounts.Load(); status != http.StatusNoContent || got == nil || got.Databases[0].AccountID != database {
		t.Errorf("%d %s, %+v", status, body, got)
	}
}

// An agent that is not in charge says what it is, and does nothing.
func TestAnAgentThatIsNotInChargeRefuses(t *testing.T) {
	w := &work{idle: command.Refuse(command.ReasonUnavailable, "not yet")}
	r := start(t, w)
	for route, want := range map[string]int{
		"GET /health": 200, "GET /metrics": 200, "GET /v1/capabilities": 200, "POST /v1/commands": 503, "PUT /v1/accounts": 503,
		"GET /v1/databases/" + database + "/size": 503, "GET /v1/databases/" + database + "/backups/" + filename: 503,
	} {
		method, path, _ := strings.Cut(route, " ")
		if status, body := r.do(t, method, path, "Bearer "+secret, valid); status != want || strings.Contains(body, `"connections"`) {
			t.Errorf("%s: %d %s", route, status, body)
		}
	}
	if w.got.Load() != nil {
		t.Error("it has carried out a command")
	}
	for range 20 { // a control plane asks again and again
		r.do(t, "POST", "/v1/commands", "Bearer "+secret, valid)
	}
	r.stop()
	<-r.ended
	if lines := r.log.FilterMessage("refused").Len(); lines != 1 {
		t.Errorf("%d lines say that the agent is not in charge", lines)
	}
	for _, line := range r.log.FilterMessage("request").All() {
		if line.Level > zap.DebugLevel {
			t.Errorf("a request that was refused for that has a line of its own: %+v", line)
		}
	}
}

// PostgreSQL that refuses an agent for not being in charge of it is not down.
func TestPostgresAnswersAnAgentThatIsNotInCharge(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("a session: %w", &pq.Error{Code: "PGH01"}), true}, {&pq.Error{Code: pqerror.CannotConnectNow}, false},
		{errors.New("refused"), false},
	} {
		r := start(t, &work{idle: command.Refuse(command.ReasonUnavailable, "not yet"), failing: c.err})
		_, text := r.do(t, "GET", "/v1/capabilities", "Bearer "+secret, "")
		var known command.Capabilities
		check.NoError(t, json.Unmarshal([]byte(text), &known))
		if known.State.Postgres != c.want || known.State.InCharge {
			t.Errorf("%v: %s", c.err, text)
		}
	}
}

func TestRefusalsHaveTheirStatus(t *testing.T) {
	wanted := map[command.Reason]int{
		command.ReasonStale: 409, command.ReasonFenced: 409, command.ReasonConflict: 409, command.ReasonClosed: 409,
		command.ReasonCompleted: 409, command.ReasonNameTaken: 409, command.ReasonNotFound: 404, command.ReasonStorageFull: 507,
		command.ReasonUnavailable: 503, command.ReasonNoRoute: 404, command.ReasonInvalid: 400, command.ReasonFailed: 422,
		command.ReasonConnectRequired: 409, command.ReasonDatabaseClosed: 409, command.ReasonOtherProtocol: 501,
		command.ReasonBusy: 409, command.ReasonCrowded: 503, command.ReasonInService: 409, command.ReasonIsolated: 409,
		command.ReasonUnfinished: 503, command.ReasonAltered: 409, command.ReasonBehind: 409, command.ReasonIncomplete: 422,
		command.ReasonStorageAway: 503, command.ReasonNotRecoverable: 409, command.ReasonTooLarge: 409,
	}
	for _, reason := range command.Reasons {
		want := wanted[reason]
		r := start(t, &work{refuse: reason})
		status, body := r.do(t, "POST", "/v1/commands", "Bearer "+secret, valid)
		if status != want || !strings.Contains(body, `"reason":"`+string(reason)+`"`) {
			t.Errorf("%s: %d %s", reason, status, body)
		}
	}
}

// The cause of a refusal stands in this log only; whoever has the operation's ID from another finds it there.
func TestRefusalIsLoggedWithItsOperation(t *testing.T) {
	r := start(t, &work{refuse: command.ReasonUnavailable})
	r.do(t, "POST", "/v1/commands", "Bearer "+secret, valid)
	r.stop()
	<-r.ended
	lines := r.log.FilterMessage("refused").All()
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	var sent protocol.Command
	check.NoError(t, json.Unmarshal([]byte(valid), &sent))
	said := lines[0].ContextMap()
	if sent.OperationID == "" || said["operationId"] != sent.OperationID || said["resource"] != sent.Resource ||
		said["error"] == "" {
		t.Errorf("%v", said)
	}
}

// A control plane asks again and again how things are.
func TestWhatOnlyAsksIsLoggedAtDebug(t *testing.T) {
	command := func(change ...string) string { return strings.NewReplacer(change...).Replace(valid) }
	backup := []string{"database.ensure", "backup.run", `"step":"s"`}
	for _, c := range []struct {
		method, path, body string
		level              zapcore.Level
	}{
		{"GET", "/health", "", zap.DebugLevel},
		{"GET", "/v1/capabilities", "", zap.DebugLevel},
		{"GET", "/v1/databases/" + database + "/size", "", zap.DebugLevel},
		{"GET", "/v1/databases/none/size", "", zap.InfoLevel},
		{"POST", "/v1/commands", command(append(backup, `"step":"running"`)...), zap.DebugLevel},
		{"POST", "/v1/commands", command(append(backup, `"step":"done"`)...), zap.InfoLevel},
		{"POST", "/v1/commands", valid, zap.InfoLevel},
	} {
		r := start(t, &work{})
		r.do(t, c.method, c.path, "Bearer "+secret, c.body)
		r.stop()
		<-r.ended
		if lines := r.log.FilterMessage("request").All(); len(lines) != 1 || lines[0].Level != c.level {
			t.Errorf("%s %s: %+v, want one line of level %s", c.method, c.path, lines, c.level)
		}
	}
}

func TestLogHoldsNoSecret(t *testing.T) {
	r := start(t, &work{refuse: command.ReasonFailed})
	r.do(t, "POST", "/v1/commands", "Bearer "+secret, valid)
	r.do(t, "POST", "/v1/commands", "Bearer "+secret, valid+"}")
	r.do(t, "POST", "/v1/commands", "Bearer stolen", valid)
	r.stop()
	<-r.ended
	var all bytes.Buffer
	for _, e := range r.log.All() {
		text := check.Must(json.Marshal([]any{e.Message, e.ContextMap()}))(t)
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
	req := check.Must(http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/commands", strings.NewReader(valid)))(t)
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set(protocol.Header, strconv.Itoa(command.Protocol))
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
	check.NoError(t, <-r.ended)
}

// While a secret is exchanged, the new one and the former are accepted; then the former is refused at once.
func TestTwoSecrets(t *testing.T) {
	w := &work{}
	r := start(t, w)
	const other = "another-secret-0123456789"
	ask := func(secret string) int {
		status, _ := r.do(t, "GET", "/v1/capabilities", "Bearer "+secret, "")
		return status
	}
	for _, c := range []struct {
		accepted      []string
		first, second int
	}{
		{[]string{secret}, http.StatusOK, http.StatusUnauthorized}, {[]string{other, secret}, http.StatusOK, http.StatusOK},
		{[]string{secret, other}, http.StatusOK, http.StatusOK}, {[]string{other}, http.StatusUnauthorized, http.StatusOK},
	} {
		w.accepted.Store(&c.accepted)
		if first, second := ask(secret), ask(other); first != c.first || second != c.second {
			t.Errorf("%q: %d, %d", c.accepted, first, second)
		}
	}
}
