package wiring

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/metrics"
)

// opsServer runs an operations listener and returns where.
func opsServer(t *testing.T, change func(*http.Server)) (address string) {
	t.Helper()
	o := NewOps(metrics.NewRegistry("", ""), nil, zap.NewNop())
	change(&o.server)
	ln := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	ended := make(chan error)
	go func() { ended <- o.Serve(ln) }()
	t.Cleanup(func() { check.NoError(t, errors.Join(o.Shutdown(context.WithoutCancel(t.Context())), <-ended)) })
	return ln.Addr().String()
}

func get(t *testing.T, url string) (status int, body []byte) {
	t.Helper()
	r := check.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
	answer := check.Must(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	return answer.StatusCode, check.Must(io.ReadAll(answer.Body))(t)
}

func TestProfiles(t *testing.T) {
	// A profile takes longer than what else is read and answered here.
	at := "http://" + opsServer(t, func(s *http.Server) {
		s.ReadTimeout, s.WriteTimeout = 300*time.Millisecond, 300*time.Millisecond
	}) + "/debug/pprof/"
	for name, within := range map[string]string{
		"goroutine": "TestProfiles", "heap": "inuse_space", "allocs": "alloc_space", "profile?seconds=1": "nanoseconds",
	} {
		var status int
		var body []byte
		check.Eventually(t, "the pause to be over", func() bool {
			status, body = get(t, at+name)
			return status != http.StatusTooManyRequests
		})
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", name, status, body)
		}
		unpacked := check.Must(gzip.NewReader(bytes.NewReader(body)))(t)
		text := string(check.Must(io.ReadAll(unpacked))(t))
		if !strings.Contains(text, within) {
			t.Errorf("%s is not what it should be: %d bytes", name, len(text))
		}
	}
}

func TestProfilesAreMadeOneAtATime(t *testing.T) {
	p, mux := newProfiles(zap.NewNop()), http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/{name}", p.serve)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	at := server.URL + "/debug/pprof/goroutine"
	p.slot <- struct{}{} // as while one is made
	if status, _ := get(t, at); status != http.StatusTooManyRequests {
		t.Errorf("beside another: %d", status)
	}
	<-p.slot
	if status, _ := get(t, at); status != http.StatusOK {
		t.Errorf("after another: %d", status)
	}
	if status, _ := get(t, at); status != http.StatusTooManyRequests {
		t.Errorf("at once after another: %d", status)
	}
	check.Eventually(t, "the pause to be over", func() bool { return len(p.slot) == 0 })
}

func TestAProfileEndsWithItsClient(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	leave()
	var none bytes.Buffer
	if err := makeProfile(ctx, &none, cpuProfile, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

func TestProfilesThatAreRefused(t *testing.T) {
	at := "http://" + opsServer(t, func(*http.Server) {}) + "/debug/pprof/"
	for path, want := range map[string]int{
		"profile?seconds=31": 400, "profile?seconds=0": 400, "profile?seconds=1.5": 400, "profile?seconds=1&seconds=2": 400,
		"profile?debug=2": 400, "goroutine?debug=2": 400, "heap?seconds=1": 400,
		"cmdline": 404, "trace": 404, "symbol": 404, "block": 404, "mutex": 404, "": 404,
	} {
		if status, body := get(t, at+path); status != want {
			t.Errorf("%s: %d %s; want %d", path, status, body, want)
		}
	}
}

func TestProfilesAreForThisMachine(t *testing.T) {
	for _, c := range []struct {
		from, to, host, passedOn string
		want                     bool
	}{
		{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:2", "", true}, {"[::1]:1", "[::1]:2", "[::1]:2", "", true},
		{"10.0.0.5:1", "10.0.0.5:2", "10.0.0.5:2", "", true}, {"[::ffff:10.0.0.5]:1", "10.0.0.5:2", "10.0.0.5", "", true},
		{"127.0.0.1:1", "127.0.0.1:2", "Localhost:2", "", true}, {"[::1]:1", "[::1]:2", "[::1]", "", true},
		{"10.0.0.6:1", "10.0.0.5:2", "10.0.0.5", "", false}, {"[2001:db8::1]:1", "[2001:db8::2]:2", "[2001:db8::2]", "", false},
		{"@", "@", "localhost", "", false},
		// A browser on this machine that a page has led here.
		{"127.0.0.1:1", "127.0.0.1:2", "rebound.example.com:2", "", false}, {"127.0.0.1:1", "127.0.0.1:2", "", "", false},
		{"127.0.0.1:1", "127.0.0.1:2", "localhost.example.com", "", false},
		{"127.0.0.1:1", "127.0.0.1:2", "localhost", "Forwarded", false},
		{"127.0.0.1:1", "127.0.0.1:2", "localhost", "X-Forwarded-For", false},
		{"127.0.0.1:1", "127.0.0.1:2", "localhost", "X-Real-Ip", false},
		{"127.0.0.1:1", "127.0.0.1:2", "localhost", "Via", false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/debug/pprof/heap", nil)
		r.RemoteAddr, r.Host = c.from, c.host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, address(c.to)))
		if c.passedOn != "" {
			r.Header.Set(c.passedOn, "127.0.0.1")
		}
		if got := fromHere(r); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		answer := httptest.NewRecorder()
		if newProfiles(zap.NewNop()).serve(answer, r); !c.want && answer.Code != http.StatusForbidden {
			t.Errorf("%+v: %d", c, answer.Code)
		}
	}
}

// address is that of a connection.
type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }
