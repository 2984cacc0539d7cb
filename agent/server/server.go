// Package server is the agent's HTTPS listener. It implements agent/protocol and delegates the work.
package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// Commands carries out commands. Errors are turned into refusals by Config.Refusal.
type Commands interface {
	Execute(ctx context.Context, c protocol.Command) (json.RawMessage, error)
	InspectLogin(ctx context.Context, q protocol.LoginQuestion) (protocol.LoginAnswer, error)
	SetAccounts(ctx context.Context, accounts protocol.Accounts) error
	Size(ctx context.Context, db id.DatabaseID) (int64, error)
	// Connections returns how many connections the customers' databases can have together.
	Connections(ctx context.Context) (int, error)
}

// Files serves and removes backup files.
type Files interface {
	Room(ctx context.Context, db id.DatabaseID) error
	Delete(ctx context.Context, db id.DatabaseID, name backup.Filename) error
	Open(ctx context.Context, db id.DatabaseID, name backup.Filename) (io.ReadCloser, int64, error)
}

// Health makes health reports; the error is for the log.
type Health interface {
	Report(ctx context.Context) (protocol.Health, error)
}

// Config is what the listener needs.
type Config struct {
	Certificates []tls.Certificate
	// Secret is the bearer token of every request but the liveness check.
	Secret  string
	Version string

	Commands Commands
	Files    Files
	Health   Health
	// Programs lists the programs that the agent works with, for capabilities.
	Programs func() []protocol.Program
	// Refusal turns every error into a refusal on the wire.
	Refusal func(error) protocol.Refusal
	Log     *zap.Logger
}

// Limits of the listener.
const (
	maxCommand    = 1 << 20 // bytes of a command
	maxHeader     = 16 << 10
	headerTime    = 5 * time.Second
	bodyTime      = 30 * time.Second
	answerTime    = 3 * time.Minute // longer than any command takes
	idleTime      = 90 * time.Second
	shutdownTime  = 15 * time.Second
	downloadChunk = 1 << 20
	// chunkTime is for an API host to take one chunk of a download, so that one that hangs does not hold a file for ever. It is far
	// above what the slowest customer needs whom an API host lets go on: the kernels between them can hold 17 MB, which are taken
	// first.
	chunkTime = 10 * time.Minute
)

// Server answers requests.
type Server struct {
	config Config
	secret [sha256.Size]byte
	http   *http.Server
}

// New makes a server.
func New(c Config) (*Server, error) {
	if len(c.Secret) < minSecret {
		return nil, errors.New("the shared secret must have 16 characters or more")
	}
	s := &Server{config: c, secret: sha256.Sum256([]byte(c.Secret))}
	s.http = &http.Server{
		Handler:           s.logged(s.routes()),
		ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       zap.NewStdLog(c.Log),
	}
	return s, nil
}

const minSecret = 16

// Serve answers on a listener until ctx ends, and then lets running requests finish.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	secure := tls.NewListener(l, &tls.Config{
		Certificates: s.config.Certificates, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	})
	ended := make(chan error, 1)
	go func() { ended <- s.http.Serve(secure) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if s.http.Shutdown(grace) != nil {
		_ = s.http.Close() // whoever is still here had its time
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// routes is the only list of the agent's routes. Any other path gets a plain 404, without a refusal.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	for pattern, handle := range s.protected() {
		mux.Handle(pattern, s.authenticated(handle))
	}
	return mux
}

func (s *Server) protected() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /health":                                  s.health,
		"GET /v1/capabilities":                         s.capabilities,
		"POST /v1/commands":                            s.command,
		"POST /v1/logins/inspect":                      s.inspectLogin,
		"PUT /v1/accounts":                             s.setAccounts,
		"GET /v1/databases/{id}/size":                  s.size,
		"GET /v1/databases/{id}/backups/room":          s.room,
		"GET /v1/databases/{id}/backups/{filename}":    s.download,
		"DELETE /v1/databases/{id}/backups/{filename}": s.deleteBackup,
	}
}

// authenticated compares the bearer token in constant time. Without it nothing of the body is read.
func (s *Server) authenticated(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		sum := sha256.Sum256([]byte(token))
		if subtle.ConstantTimeCompare(sum[:], s.secret[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next(w, r)
	})
}

func answer(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		status, text = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that is gone asks again
}

var statuses = map[string]int{
	protocol.ReasonStale: http.StatusConflict, protocol.ReasonFenced: http.StatusConflict,
	protocol.ReasonConflict: http.StatusConflict, protocol.ReasonClosed: http.StatusConflict,
	protocol.ReasonCompleted: http.StatusConflict, protocol.ReasonNameTaken: http.StatusConflict,
	protocol.ReasonNotFound: http.StatusNotFound, protocol.ReasonNoRoute: http.StatusNotFound,
	protocol.ReasonConnectRequired: http.StatusConflict, protocol.ReasonDatabaseClosed: http.StatusConflict,
	protocol.ReasonStorageFull: http.StatusInsufficientStorage, protocol.ReasonUnavailable: http.StatusServiceUnavailable,
	protocol.ReasonInvalid: http.StatusBadRequest, protocol.ReasonFailed: http.StatusUnprocessableEntity,
}

// refuse answers with a refusal. Its cause goes to the log only: it names things on the server, but never a secret.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	no := s.config.Refusal(err)
	status, known := statuses[no.Reason]
	if !known {
		status = http.StatusInternalServerError
	}
	s.config.Log.Info("refused", append(described(r), zap.String("path", r.URL.Path), zap.String("reason", no.Reason),
		zap.String("message", no.Message), zap.Error(err), zap.NamedError("cause", errors.Unwrap(err)))...)
	answer(w, status, no)
}
