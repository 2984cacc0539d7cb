package agentclient_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/server"
)

// An agent says in one answer all that a survey shows, which stays small however many clients its server has.
func TestASurveyAsksOnce(t *testing.T) {
	state, reasons := command.ServerState{Postgres: true}, []string{"not_initialized: m"}
	for name, c := range map[string]struct {
		says command.Capabilities
		want server.Survey
	}{
		"all": {
			command.Capabilities{Version: "v", Protocol: 1, Installation: "i", Connections: 80, State: state, Reasons: reasons},
			server.Survey{Version: "v", Protocol: 1, Installation: "i", Connections: 80, Postgres: true, Reasons: reasons},
		},
		"another protocol": {
			command.Capabilities{Version: "w", Protocol: 7, Connections: 80}, server.Survey{Version: "w", Protocol: 7},
		},
	} {
		w := newWire(t, func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/capabilities" || r.Header.Get("Authorization") != "Bearer "+secret {
				t.Errorf("asked for %s", r.URL.Path)
			}
			answer(200, c.says)(rw, r)
		})
		seen := newFleet(t, agentclient.Options{}).Survey(brief(t), w.server(t))
		if seen.Version != c.want.Version || seen.Installation != c.want.Installation || seen.Connections != c.want.Connections ||
			seen.Postgres != c.want.Postgres || seen.PgBouncer || seen.Protocol != c.want.Protocol ||
			!slices.Equal(seen.Reasons, c.want.Reasons) {
			t.Errorf("%s: %+v", name, seen)
		}
		wantShown(t, seen.Agent, w, "")
		wantRequests(t, w, 1)
	}
}

// wantShown is for a look that has seen the certificate of w.
func wantShown(t *testing.T, r server.Reach, w *wire, trouble server.Trouble) {
	t.Helper()
	if r.Trouble != trouble || !r.Ends.Equal(w.Certificate().NotAfter) || !slices.Contains(r.Names, "127.0.0.1") {
		t.Errorf("%+v", r)
	}
}

func TestASurveyThatGetsNoAnswer(t *testing.T) {
	w, plain := newWire(t, answer(200, "{}")), httptest.NewServer(answer(200, "{}"))
	defer plain.Close()
	fleet, s := newFleet(t, agentclient.Options{}), w.server(t)
	s.CA = foreignCA(t)
	wantShown(t, fleet.Survey(brief(t), s).Agent, w, server.UnknownCA)
	wantRequests(t, w, 0)
	s.AgentURL = strings.Replace(plain.URL, "http:", "https:", 1)
	if seen := fleet.Survey(brief(t), s); seen.Agent.Trouble != server.NoTLS {
		t.Errorf("%+v", seen.Agent)
	}
}

// A survey that is called off while it dials leaves no connection behind.
func TestASurveyThatIsCalledOff(t *testing.T) {
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(check.Patience))
			_, err = conn.Read(make([]byte, 1)) // it shakes hands
			cancel()
		}
		if err == nil {
			_, err = io.Copy(io.Discard, conn)
		}
		ended <- err
	}()
	s := newWire(t, answer(200, "{}")).server(t)
	s.AgentURL = "https://" + l.Addr().String()
	if seen := newFleet(t, agentclient.Options{}).Survey(ctx, s); seen.Agent.Trouble == "" {
		t.Errorf("%+v", seen)
	}
	if err := <-ended; errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection stays open")
	}
}
