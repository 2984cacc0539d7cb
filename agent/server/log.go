package server

import (
	"context"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/protocol"
)

// details are what a handler adds to the log line of its request: names only, never a payload or a secret.
type details struct {
	fields []zap.Field
	// asks: the request only asks how things are, as many do again and again.
	asks bool
	// ofAll: it was refused as all are, because the agent is not in charge or has another protocol.
	ofAll bool
}

type detailsKey struct{}

// describe adds a command's names to the request's line.
func describe(r *http.Request, c protocol.Command) {
	if d, ok := r.Context().Value(detailsKey{}).(*details); ok {
		d.fields = append(d.fields, zap.String("kind", string(c.Kind)), zap.String("operationId", c.OperationID),
			zap.String("resource", c.Resource), zap.Int64("generation", c.Generation), zap.Int64("epoch", c.Epoch))
	}
}

// onlyAsks has the request's line written at debug level, unless it is refused.
func onlyAsks(ctx context.Context) {
	if d, ok := ctx.Value(detailsKey{}).(*details); ok {
		d.asks = true
	}
}

// inCharge refuses a request while the agent is not in charge.
func (s *Server) inCharge(r *http.Request) error {
	return ofAll(r, s.config.InCharge())
}

// ofAll marks a request that is refused as all are; the log tells of that once in a while.
func ofAll(r *http.Request, err error) error {
	if d, ok := r.Context().Value(detailsKey{}).(*details); ok && err != nil {
		d.ofAll = true
	}
	return err
}

func isOfAll(r *http.Request) bool {
	d, ok := r.Context().Value(detailsKey{}).(*details)
	return ok && d.ofAll
}

// described returns what a handler has told so far, for another line about the same request.
func described(r *http.Request) []zap.Field {
	if d, ok := r.Context().Value(detailsKey{}).(*details); ok {
		return slices.Clone(d.fields)
	}
	return nil
}

// logged writes one line for each request but the liveness check, which comes every few seconds.
func (s *Server) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			next.ServeHTTP(w, r)
			return
		}
		begin := time.Now()
		var d details
		seen := &statusWriter{ResponseWriter: w}
		defer func() {
			level := zap.InfoLevel
			if d.ofAll || d.asks && seen.status < http.StatusBadRequest {
				level = zap.DebugLevel
			}
			s.config.Log.Log(level, "request", append(d.fields, zap.String("method", r.Method), zap.String("path", r.URL.Path),
				zap.Int("status", seen.status), zap.Duration("took", time.Since(begin)))...)
		}()
		next.ServeHTTP(seen, r.WithContext(context.WithValue(r.Context(), detailsKey{}, &d)))
	})
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
