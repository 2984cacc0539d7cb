package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/fault"
)

const jsonType = "Content-Type: application/json"

// stage is a running server of the API's table.
type stage struct{ address string }

func open(t *testing.T, cp *controlplane.ControlPlane) *stage {
	t.Helper()
	var n atomic.Int64
	s := check.Must(serve.New(serve.Config{
		Gate: NewGate(cp), Routes: Routes(cp), Limits: serve.DefaultLimits(), Log: zap.NewNop(), Metrics: prometheus.NewRegistry(),
		RequestID: func() string { return fmt.Sprintf("req-%d", n.Add(1)) },
	}))(t)
	ln := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		_ = s.Shutdown(ctx) // it may cut connections
		check.NoError(t, <-served, "Serve")
	})
	return &stage{ln.Addr().String()}
}

type reply struct {
	*http.Response
	text string
}

// ask sends a request on a connection of its own.
func (st *stage) ask(t *testing.T, request string) reply {
	t.Helper()
	c := check.Must(net.Dial("tcp", st.address))(t)
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second)) // an error shows when it is read
	_, _ = io.WriteString(c, request)                   // likewise
	res := check.Must(http.ReadResponse(bufio.NewReader(c), nil))(t)
	return reply{res, string(check.Must(io.ReadAll(res.Body))(t))}
}

func (r reply) expect(t *testing.T, status int, code fault.Code) {
	t.Helper()
	if r.StatusCode != status || !strings.Contains(r.text, `"code":"`+string(code)+`"`) {
		t.Fatalf("got %d %s, want %d %s", r.StatusCode, r.text, status, code)
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
