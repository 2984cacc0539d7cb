package crash_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/agent/setup"
)

// world is a running stack with one host of each kind, and what a test looks at it with.
type world struct {
	*stack.Stack
	api, batch *stack.Host
	agent      *stack.Process

	meta, server, maintenance, console *sql.DB // as their administrators

	foreign map[string]bool // databases and roles on the server that the test made itself

	unfinished map[string]string // IDs of roles that a case has left half made, and their statuses
}

func newWorld(t *testing.T, s *stack.Stack) *world {
	t.Helper()
	w := &world{Stack: s, agent: s.FirstAgent(), foreign: map[string]bool{}, unfinished: map[string]string{}}
	w.meta, w.server = stacktest.Open(t, s.MetadataURL()), stacktest.Open(t, s.Server.URL("postgres"))
	w.maintenance = stacktest.Open(t, s.Server.URL(setup.MaintenanceDatabase))
	dsn, err := s.ConsoleDSN()
	noError(t, err)
	w.console = stacktest.Open(t, dsn)
	ctx := soon(t)
	w.api, err = s.StartAPI(ctx, "")
	noError(t, err)
	w.batch, err = s.StartBatch(ctx, "")
	noError(t, err)
	return w
}

// soon is a context for one wait.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually looks again and again until the condition holds; why says what is missing.
func eventually(t testing.TB, what string, condition func() (ok bool, why string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		ok, why := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %s", what, patience, why)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// answer is what the API said.
type answer struct {
	status int
	text   []byte
}

// is fails the test unless the answer has the status.
func (a answer) is(t testing.TB, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("answer %d, want %d: %s", a.status, status, a.text)
	}
	return a
}

// code is that of an error answer.
func (a answer) code() string {
	var body struct{ Error struct{ Code string } }
	_ = json.Unmarshal(a.text, &body) // no JSON has no code
	return body.Error.Code
}

func read[T any](t testing.TB, a answer) (v T) {
	t.Helper()
	if err := json.Unmarshal(a.text, &v); err != nil {
		t.Fatalf("answer %d is not what was expected: %v: %s", a.status, err, a.text)
	}
	return v
}

// user calls the API of any host with one key.
type user struct {
	stack.Account
	http *http.Client
}

var userNumber atomic.Int64

// newUser is the owner of a new account that may have so many databases.
func (w *world) newUser(t testing.TB, databases int) *user {
	t.Helper()
	name := fmt.Sprintf("owner-%d", userNumber.Add(1))
	a, err := w.NewAccount(soon(t), name, "business", databases)
	noError(t, err)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &user{Account: a, http: &http.Client{Transport: transport}}
}

var errNoAnswer = errors.New("no answer")

// try sends a request once: a case is about the answer to each. A host that dies over it gives errNoAnswer.
func (u *user) try(ctx context.Context, host *stack.Host, method, path, key string, body any) (answer, error) {
	client, err := apiclient.New(apiclient.Config{URL: host.URL, Key: u.Key, HTTP: u.http, AttemptTimeout: 2 * patience})
	if err != nil {
		return answer{}, err
	}
	request := apiclient.Request{Method: method, Path: "/api/v1" + path, Header: http.Header{}}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
		if request.Body, err = json.Marshal(body); err != nil {
			return answer{}, err
		}
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := client.Do(ctx, request)
	if err != nil {
		return answer{}, errors.Join(errNoAnswer, err)
	}
	return answer{response.Status, response.Body}, nil
}

// do sends a request that must be answered.
func (u *user) do(t testing.TB, host *stack.Host, method, path, key string, body any) answer {
	t.Helper()
	a, err := u.try(soon(t), host, method, path, key, body)
	noError(t, err)
	return a
}

// databaseAnswer is a database as create gives it.
type databaseAnswer struct {
	ID, Name, Status, Username, Password, ConnectionString string
}

type createBody struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	RoleModel   string `json:"roleModel,omitempty"`
}

// create makes a database that must come to be.
func (u *user) create(t testing.TB, host *stack.Host, name string) databaseAnswer {
	t.Helper()
	a := u.do(t, host, http.MethodPost, "/databases", "", createBody{Name: name, DisplayName: name})
	return read[databaseAnswer](t, a.is(t, http.StatusCreated))
}

// customer opens one connection through the pooler, with TLS and the server's name checked.
func (w *world) customer(t testing.TB, connectionString string) *sql.DB {
	t.Helper()
	u, err := url.Parse(connectionString)
	noError(t, err)
	query := u.Query()
	if query.Get("sslmode") != "verify-full" {
		t.Fatalf("the connection string does not ask for verify-full: %s", u.Redacted())
	}
	query.Set("sslrootcert", w.CAFile())
	query.Set("connect_timeout", "10")
	u.RawQuery = query.Encode()
	db, err := sql.Open("postgres", u.String())
	noError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() }) // the connection may have been ended long ago
	return db
}

// logsIn fails the test unless the database lets its owner in.
func (w *world) logsIn(t testing.TB, d databaseAnswer) {
	t.Helper()
	var who, where string
	err := w.customer(t, d.ConnectionString).QueryRowContext(soon(t), "SELECT current_user, current_database()").Scan(&who, &where)
	if err != nil || who != d.Username || where != d.Name {
		t.Fatalf("logged in as %q at %q: %v", who, where, err)
	}
}

var nameNumber atomic.Int64

// newName is a name that no database of this run has.
func newName(prefix string) string { return fmt.Sprintf("%s-%d", prefix, nameNumber.Add(1)) }
