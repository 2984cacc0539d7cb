package driver

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/adapters/httpapi"
	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/core/controlplane"
)

// HTTP makes a world of real API hosts on loopback, in this process, with everything behind them in memory. Their
// store runs every update twice, which reveals effects outside a transaction.
func HTTP(t testing.TB) spec.World {
	t.Helper()
	return onHTTP(t, newService(t))
}

// Still is as HTTP, in a world where open operations need no time: hasten makes all of them due, wherever the clock stands.
func Still(t testing.TB) (w spec.World, hasten func() error) {
	t.Helper()
	s := newService(t)
	return onHTTP(t, s), s.hasten
}

func onHTTP(t testing.TB, s *service) spec.World {
	t.Helper()
	w := s.world()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	for _, cp := range s.hosts {
		w.Hosts = append(w.Hosts, client(startHost(t, s, cp), described{transport, t}))
	}
	t.Cleanup(transport.CloseIdleConnections)
	return w
}

// startHost starts an API host and returns its base URL.
func startHost(t testing.TB, s *service, cp *controlplane.ControlPlane) string {
	t.Helper()
	server, err := serve.New(serve.Config{
		Gate: httpapi.NewGate(cp), Routes: httpapi.Routes(cp), Limits: serve.DefaultLimits(),
		Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Log:     zap.NewNop(), Metrics: prometheus.NewRegistry(), RequestID: func() string { return s.entropy.Base62(20) },
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}
