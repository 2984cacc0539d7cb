package agentclient_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/server"
)

func countNew(n *atomic.Int64) func(net.Conn, http.ConnState) {
	return func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			n.Add(1)
		}
	}
}

func TestConnectionRefusedIsUnreachable(t *testing.T) {
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			w := newWire(t, answer(200, "{}"))
			s := w.server(t)
			w.Server.Close()
			wantUnreachable(t, call(brief(t), agentOf(t, s)))
		})
	}
}

func TestAnotherCAIsUnreachable(t *testing.T) {
	w := newWire(t, answer(200, "{}"))
	s := w.server(t)
	s.CA = foreignCA(t)
	wantUnreachable(t, calls["EnsureDatabase"](brief(t), agentOf(t, s)))
	s.CA = "" // the system's roots do not know the agent either
	wantUnreachable(t, calls["EnsureDatabase"](brief(t), agentOf(t, s)))
	wantRequests(t, w, 0)
}

func TestAnotherNameIsUnreachable(t *testing.T) {
	w := newWire(t, answer(200, "{}"))
	s := w.server(t)
	s.AgentURL = strings.Replace(w.URL, "127.0.0.1", "localhost", 1) // not in the certificate
	wantUnreachable(t, calls["EnsureDatabase"](brief(t), agentOf(t, s)))
	wantRequests(t, w, 0)
}

func TestAHostThatNeverShakesHandsIsUnreachable(t *testing.T) {
	silent := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer silent.Close()
	s := newWire(t, answer(200, "{}")).server(t)
	s.AgentURL = "https://" + silent.Addr().String()
	a := check.Must(newFleet(t, agentclient.Options{DialTimeout: 50 * time.Millisecond}).Agent(s))(t)
	wantUnreachable(t, calls["EnsureDatabase"](brief(t), a))
}

func TestACanceledCallIsUnreachable(t *testing.T) {
	w := newWire(t, answer(200, protocol.Reply{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantUnreachable(t, calls["EnsureDatabase"](ctx, agentOf(t, w.server(t))))
	wantRequests(t, w, 0)
}

func TestWaitingForATurnIsUnreachable(t *testing.T) {
	release := make(chan struct{})
	w := newWire(t, func(rw http.ResponseWriter, r *http.Request) {
		<-release
		answer(200, command.Size{})(rw, r)
	})
	a := check.Must(newFleet(t, agentclient.Options{MaxCalls: 1}).Agent(w.server(t)))(t)
	first := make(chan error, 1)
	go func() { first <- calls["DatabaseSize"](t.Context(), a) }()
	for w.requests.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wantUnreachable(t, calls["SetAccess"](ctx, a))
	close(release)
	check.NoError(t, <-first, "the call that had its turn")
	wantRequests(t, w, 1)
}

func TestUnusableRecordsAreUnreachable(t *testing.T) {
	good := newWire(t, answer(200, "{}")).server(t)
	for name, change := range map[string]func(*server.Server){
		"plain HTTP":       func(s *server.Server) { s.AgentURL = "http://127.0.0.1:1" },
		"no URL":           func(s *server.Server) { s.AgentURL = "" },
		"URL with a user":  func(s *server.Server) { s.AgentURL = "https://user:" + secret + "@127.0.0.1:1" },
		"URL with a query": func(s *server.Server) { s.AgentURL += "?a=b" },
		"no PEM":           func(s *server.Server) { s.CA = "hello" },
		"another's secret": func(s *server.Server) { s.ID = "44444444-4444-4444-8444-444444444444" },
		"no secret":        func(s *server.Server) { s.SealedSecret = nil },
		"empty secret":     func(s *server.Server) { s.SealedSecret = sealSecret(t, *s, "") },
		"header injection": func(s *server.Server) { s.SealedSecret = sealSecret(t, *s, secret+"\r\nX: y") },
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			change(&s)
			_, err := newFleet(t, agentclient.Options{}).Agent(s)
			wantUnreachable(t, err)
		})
	}
}

// The proxy is a listener that must see nobody. The agent's name is not loopback, which no proxy setting covers.
func TestProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	s := newWire(t, answer(200, "{}")).server(t)
	s.AgentURL = "https://agent.invalid:8443"
	target, _ := url.Parse(s.AgentURL)
	if used, err := http.ProxyFromEnvironment(&http.Request{URL: target}); err != nil || used == nil {
		t.Fatalf("the environment names no proxy (%v, %v): the test would show nothing", used, err)
	}
	wantUnreachable(t, calls["EnsureDatabase"](brief(t), agentOf(t, s)))
	if n := asked.Load(); n != 0 {
		t.Errorf("the proxy was asked %d times", n)
	}
}
