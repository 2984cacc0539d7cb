package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/gofiber/fiber/v2/utils.StartTimeStampUpdater.func1.1"),
		goleak.IgnoreAnyFunction("github.com/gofiber/utils.StartTimeStampUpdater.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"), // ends 10 s after its server
	)
}

const (
	knownID   = "0b5c1f4e-7a52-4f0d-9d3e-1c2b3a4d5e6f"
	foreignID = "11111111-2222-4333-8444-555555555555"
	anyKey    = "selected"
	// The doorman keeps this gate closed, and every other one open.
	closedGate = rollout.Clone
)

// doorman knows a handful of keys and one database.
type doorman struct {
	mu          sync.Mutex
	knocks      []access.Attempt
	maintenance bool
	crowded     bool          // no address has a request left
	away        bool          // keys cannot be looked up
	through     chan struct{} // until it is closed, the key "patient" waits
	callers     map[string]access.Caller
}

func newDoorman() *doorman {
	of := func(kind account.KeyKind, scope account.Scope, plan account.Plan) access.Caller {
		return access.Caller{
			Key:     account.Key{ID: "k1234567", Kind: kind, Scope: scope},
			Account: account.Account{Plan: plan},
		}
	}
	return &doorman{callers: map[string]access.Caller{
		"full":     of(account.AccountKey, account.FullAccount, account.Business),
		anyKey:     of(account.AccountKey, account.SelectedDatabases, account.Pro),
		"free":     of(account.AccountKey, account.FullAccount, account.Free),
		"ci":       of(account.CIKey, account.SelectedDatabases, account.Pro),
		"spent":    of(account.AccountKey, account.FullAccount, account.Pro),
		"viewer":   of(account.AccountKey, account.SelectedDatabases, account.Pro),
		"unlisted": of(account.AccountKey, account.SelectedDatabases, account.Pro),
	}}
}

func (d *doorman) Admit(_ context.Context, k access.Attempt) (access.Admission, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.knocks = append(d.knocks, k)
	if k.Key == "patient" {
		d.mu.Unlock()
		<-d.through
		d.mu.Lock()
	}
	if d.away {
		return access.Admission{}, fmt.Errorf("%w: no route to host", ports.ErrUnavailable)
	}
	c, ok := d.callers[k.Key]
	if !ok && k.Key == "flood" {
		return access.Admission{Rate: ratelimit.Decision{Limit: 30, Reset: time.Minute}},
			fault.New(fault.RateLimited, "too many unauthorized attempts")
	}
	if !ok {
		return access.Admission{}, account.ErrUnauthorized()
	}
	a := access.Admission{
		Caller: c, Maintenance: d.maintenance,
		Rate: ratelimit.Decision{Allowed: true, Limit: 600, Remaining: 599, Reset: 1500 * time.Millisecond},
	}
	if k.Key == "spent" {
		e := fault.New(fault.RateLimited, "too many requests")
		e.RetryAfter = 2300 * time.Millisecond
		a.Rate = ratelimit.Decision{Limit: 600, Reset: time.Minute}
		return a, e
	}
	return a, nil
}

// AdmitAddress has one bucket for all addresses.
func (d *doorman) AdmitAddress(_ context.Context, k access.Attempt) (access.Admission, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.knocks = append(d.knocks, k)
	if d.crowded {
		e := fault.New(fault.RateLimited, "too many requests")
		e.RetryAfter = 2300 * time.Millisecond
		return access.Admission{Rate: ratelimit.Decision{Limit: 20, Reset: time.Minute}}, e
	}
	a := access.Admission{Rate: ratelimit.Decision{Allowed: true, Limit: 20, Remaining: 19, Reset: time.Second}}
	if d.maintenance {
		return a, access.ErrMaintenance()
	}
	return a, nil
}

func (d *doorman) Reach(_ context.Context, _ access.Caller, n Need) (any, error) {
	if n.ID != knownID {
		return nil, fault.New(fault.DatabaseNotFound, "no such database")
	}
	if n.Gate == closedGate {
		return nil, fault.New(fault.FeatureNotAvailable, "not enrolled")
	}
	return n.ID, nil
}

func (d *doorman) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.knocks)
}

func (d *doorman) last() access.Attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.knocks[len(d.knocks)-1]
}

type renameBody struct {
	Name        string  `json:"name" description:"the new name"`
	Count       *int    `json:"count,omitzero"`
	Confirm     *bool   `json:"confirm,omitzero"`
	Environment *string `json:"environment,omitzero" nullable:"true" enum:"production,staging"`
}

type renamed struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// stage is a running server and what a test wants to see of it.
type stage struct {
	*Server
	address string
	gate    *doorman
	logs    *observer.ObservedLogs
	metrics *prometheus.Registry
	handled atomic.Int64
	feed    func(*Request) io.ReadCloser // the content of downloads
	size    int64
	take    func(io.Reader) (int64, error) // what becomes of streams
	wait    func(*Request) (renamed, error)
}

// aThing is what the paths of the table name.
var aThing = &Target{Name: "thing", Missing: fault.DatabaseNotFound, Previews: true}

func answer(body any) Answer { return Answer{Status: http.StatusOK, Body: body} }

func (st *stage) table() []Route {
	const base = "/api/v1/things/{id}"
	done := []Documented{{Status: 200, Body: renamed{}}}
	count := func(h Handler) Handler {
		return func(r *Request) (Answer, error) { st.handled.Add(1); return h(r) }
	}
	get := count(func(r *Request) (Answer, error) { return answer(renamed{ID: r.Param("id")}), nil })
	rename := count(func(r *Request) (Answer, error) {
		return answer(renamed{ID: r.Target.(string), Name: Decoded[renameBody](r).Name}), nil
	})
	keyed := count(func(r *Request) (Answer, error) { return answer(renamed{Name: string(r.Key)}), nil })
	upload := count(func(r *Request) (Answer, error) {
		n, err := st.take(r.Stream())
		return answer(map[string]int64{"n": n}), err
	})
	broken := count(func(*Request) (Answer, error) { return Answer{}, fmt.Errorf("dial tcp 10.0.0.7: secret") })
	download := count(func(r *Request) (Answer, error) {
		return Answer{Status: 200, Download: &Download{
			Filename: "20260101_000000.sql.gz", ContentType: "application/gzip", Size: st.size, Content: st.feed(r),
		}}, nil
	})
	waits := WhileClientStays(func(r *Request) (renamed, error) { return st.wait(r) },
		func(renamed) (Answer, error) { return Answer{}, nil })
	rows := []Route{
		{Method: "GET", Path: base, Class: ratelimit.Read, Target: aThing, Action: account.See, Work: Work{Handle: get, Answers: done}},
		{Method: "PATCH", Path: base, Class: ratelimit.Write, Target: aThing, Action: account.Configure,
			Body: JSON[renameBody](), Work: Work{Handle: rename, Answers: done}, NoStore: true},
		{Method: "POST", Path: base + "/keyed", Class: ratelimit.Write, Target: aThing, Idempotency: Required,
			Body: JSON[renameBody](), Work: Work{Handle: keyed, Answers: done}},
		{Method: "POST", Path: base + "/maybe-keyed", Class: ratelimit.Write, Target: aThing, Idempotency: Optional,
			Work: Work{Handle: keyed, Answers: done}},
		{Method: "POST", Path: base + "/run", Class: ratelimit.Write, Target: aThing, Work: Work{Handle: get, Answers: done},
			BareMaintenance: true},
		{Method: "DELETE", Path: base, Class: ratelimit.Write, Key: FullAccount, Target: aThing,
			Work: Work{Handle: get, Answers: done}},
		{Method: "POST", Path: base + "/gated", Class: ratelimit.Write, Target: aThing, Gate: closedGate,
			Body: JSON[renameBody](), Work: Work{Handle: rename, Answers: done}},
		{Method: "PUT", Path: base + "/upload", Class: ratelimit.Write, Target: aThing,
			Body: Stream(), Work: Work{Handle: upload, Answers: done}},
		{Method: "PUT", Path: base + "/dump", Class: ratelimit.Write, Target: aThing,
			Body: Stream("application/gzip", "application/octet-stream"), Work: Work{Handle: upload, Answers: done}},
		{Method: "GET", Path: base + "/broken", Class: ratelimit.Read, Target: aThing, Work: Work{Handle: broken, Answers: done}},
		{Method: "GET", Path: base + "/panic", Class: ratelimit.Read, Target: aThing,
			Work: OK(func(*Request) (renamed, error) { panic("secret thing") })},
		{Method: "GET", Path: base + "/wait", Class: ratelimit.Read, Target: aThing,
			Work: Work{Handle: waits, Answers: done}},
		{Method: "POST", Path: "/api/v1/open-things", Class: ratelimit.Exchange, Key: Public, Body: JSON[renameBody](),
			Work: Work{Handle: rename, Answers: done}},
		{Method: "GET", Path: base + "/backups/{filename}", Class: ratelimit.Read, Target: aThing,
			Work:  Work{Handle: download, Answers: []Documented{{Status: 200, ContentType: "application/gzip"}}},
			Query: []Parameter{{Name: "limit", Meaning: "at most so many"}}},
		{Method: "POST", Path: "/api/v1/ci-things", Class: ratelimit.Create, Key: PreviewKey, Body: JSON[renameBody](),
			PlanRefusal: fault.PlanLimit, Work: Work{Handle: rename, Answers: done}},
	}
	for i := range rows {
		rows[i].Name = fmt.Sprint("thing", i)
	}
	return rows
}

// Times far enough apart for a busy machine: what is answered without waiting comes within atOnce, what waits for a timeout
// comes after patience, and is over by cutBy.
const (
	atOnce   = time.Second
	patience = 1500 * time.Millisecond
	cutBy    = 10 * time.Second
)

func shortLimits() Limits {
	l := DefaultLimits()
	l.HeaderTimeout, l.BodyTimeout, l.WriteTimeout = patience, patience, patience
	l.Download.Window, l.Upload.Window = patience, patience
	return l
}

// open starts a server; change may alter its configuration.
func open(t testing.TB, change ...func(*Config)) *stage {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	st := &stage{gate: newDoorman(), logs: logs, metrics: prometheus.NewRegistry()}
	st.wait = func(r *Request) (renamed, error) { <-r.Context().Done(); return renamed{}, r.Context().Err() }
	st.take = func(body io.Reader) (int64, error) { return io.Copy(io.Discard, body) }
	var n atomic.Int64
	cfg := Config{
		Gate: st.gate, Routes: st.table(), Limits: shortLimits(), Log: zap.New(core), Metrics: st.metrics,
		RequestID: func() string { return fmt.Sprintf("req-%d", n.Add(1)) },
	}
	for _, f := range change {
		f(&cfg)
	}
	s := check.Must(New(cfg))(t)
	ln := check.Must(net.Listen("tcp", ":0"))(t) // as the unit has it: one socket for IPv6 and IPv4
	st.Server, st.address = s, fmt.Sprintf("127.0.0.1:%d", ln.Addr().(*net.TCPAddr).Port)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		_ = s.Shutdown(ctx) // tests of shutdown look at its error
		check.NoError(t, <-served, "Serve")
	})
	return st
}

// line is a raw connection.
type line struct {
	net.Conn
	t  testing.TB
	br *bufio.Reader
}

func (st *stage) dial(t testing.TB) *line {
	t.Helper()
	c := check.Must(net.Dial("tcp", st.address))(t)
	t.Cleanup(func() { _ = c.Close() })
	return &line{Conn: c, t: t, br: bufio.NewReader(c)}
}

// ask sends a request on a connection of its own.
func (st *stage) ask(t *testing.T, request string) reply {
	t.Helper()
	l := st.dial(t)
	l.say(request)
	return l.hear(cutBy)
}

// say sends text; a server that has already closed is no failure of the test.
func (l *line) say(text string) { _, _ = io.WriteString(l.Conn, text) }

type reply struct {
	*http.Response
	text string
}

// hear reads one answer and expects it within the time.
func (l *line) hear(within time.Duration) reply {
	l.t.Helper()
	_ = l.SetReadDeadline(time.Now().Add(within))
	res, err := http.ReadResponse(l.br, nil)
	if err != nil {
		l.t.Fatalf("no answer within %v: %v", within, err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		l.t.Fatalf("the answer's body: %v", err)
	}
	return reply{res, string(body)}
}

// download asks for the file, and returns the answer before its body.
func (l *line) download() *http.Response {
	l.t.Helper()
	l.say(head("GET", backupPath, anyKey))
	return check.Must(http.ReadResponse(l.br, nil))(l.t)
}

// ended fails unless the server closes the connection without another byte.
func (l *line) ended(within time.Duration) {
	l.t.Helper()
	_ = l.SetReadDeadline(time.Now().Add(within))
	rest, err := io.ReadAll(l.br)
	if err != nil || len(rest) > 0 {
		l.t.Fatalf("the connection should have ended, got %q, %v", rest, err)
	}
}

func (r reply) expect(t testing.TB, status int, code fault.Code) {
	t.Helper()
	if r.StatusCode != status || !strings.Contains(r.text, `"code":"`+string(code)+`"`) {
		t.Fatalf("got %d %s, want %d %s", r.StatusCode, r.text, status, code)
	}
	if r.Header.Get(headerRequestID) == "" {
		t.Error("the answer has no X-Request-Id")
	}
}

// head writes a request's header; extra lines come after the key.
func head(method, path, key string, extra ...string) string {
	lines := []string{method + " " + path + " HTTP/1.1", "Host: api"}
	if key != "" {
		lines = append(lines, "Authorization: Bearer "+key)
	}
	return strings.Join(append(lines, extra...), "\r\n") + "\r\n\r\n"
}

func withBody(method, path, key, body string) string {
	return head(method, path, key, "Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body))) + body
}

const thing = "/api/v1/things/" + knownID
