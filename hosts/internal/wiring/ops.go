package wiring

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/agent/door"
	"github.com/pgherd/pgherd/hosts/internal/version"
)

// Check tells whether one part of a host works.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
}

// Ops is the operations listener: /livez, /readyz, /metrics and, for the host's own machine, /debug/pprof/NAME. It is for the
// operator's own network: nothing on it asks for a key.
type Ops struct {
	server http.Server
	mux    *http.ServeMux
	checks []Check
}

// checkLimit bounds all checks of one /readyz.
const checkLimit = 3 * time.Second

// opsBounds bound the connections of an operations listener.
var opsBounds = door.Bounds{All: 256, PerAddress: 64}

// NewOps makes the listener's handler. A host is ready when every check passes.
func NewOps(r metrics.Registry, checks []Check, log *zap.Logger) *Ops {
	o := &Ops{mux: http.NewServeMux(), checks: checks}
	o.mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	o.mux.HandleFunc("GET /readyz", o.ready)
	o.mux.Handle("GET /metrics", r.Handler())
	o.mux.HandleFunc("GET /debug/pprof/{name}", newProfiles(log).serve)
	o.server = http.Server{
		Handler: o.mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute,
	}
	door.Bound(&o.server, opsBounds, log)
	return o
}

// Handle adds a route; the dev host has one of its own.
func (o *Ops) Handle(pattern string, h http.HandlerFunc) { o.mux.HandleFunc(pattern, h) }

func (o *Ops) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), checkLimit)
	defer cancel()
	status, parts := http.StatusOK, map[string]string{"version": version.Version(), "commit": version.Revision()}
	for _, c := range o.checks {
		parts[c.Name] = "ok"
		if err := c.Run(ctx); err != nil {
			status, parts[c.Name] = http.StatusServiceUnavailable, "failing"
		}
	}
	writeJSON(w, status, parts)
}

// Serve answers until Shutdown.
func (o *Ops) Serve(ln net.Listener) error {
	if err := o.server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown lets open requests finish until ctx ends.
func (o *Ops) Shutdown(ctx context.Context) error { return o.server.Shutdown(ctx) }

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has left is no fault
}
