// Package server is the agent's HTTPS listener. It implements agent/protocol and delegates the work.
package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/door"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/trace"
)

// Commands carries out commands. Errors are turned into refusals by Config.Refusal.
type Commands interface {
	Execute(ctx context.Context, c protocol.Command) (json.RawMessage, error)
	// Connections returns how many connections the customers' databases can have together.
	Connections(ctx context.Context) (int, error)
	// Installation tells this server from every other one.
	Installation(ctx context.Context) (string, error)
	// CollectsStatements reports whether PostgreSQL counts the statements of its databases.
	CollectsStatements(ctx context.Context) (bool, error)
}

// Health has the newest health report at hand, and waits a short time for one with the list of PgBouncer's clients.
type Health interface {
	Report() protocol.Health
	ReportWithClients(ctx context.Context) protocol.Health
}

// Config is what the listener needs.
type Config struct {
	// Certificate is as in tls.Config.GetCertificate.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Secrets are the bearer tokens, of which every request but the liveness check has one. It is called at each of them.
	Secrets func() []string
	Version string

	Commands  Commands
	Questions []Question
	// Guests are the routes of others than the control plane.
	Guests []Guest
	Health Health
	// Metrics answers GET /metrics; nil: there is no such route.
	Metrics http.Handler
	// InCharge refuses commands and questions until the agent is in charge of its server.
	InCharge func() error
	// Confirmed returns an error unless the agent is in charge and has confirmed that lately, for capabilities.
	Confirmed func() error
	// PoolerAnswers reports whether PgBouncer answered when the agent in charge last looked.
	PoolerAnswers func() bool
	// Storage is where backups are kept, as capabilities say it.
	Storage string
	// PublicCA are the certificates of PgBouncer, as capabilities say them; nil: they do not.
	PublicCA func() string
	// NotLogical says what capabilities say of moves; nil: nothing does.
	NotLogical func(context.Context) (string, error)
	// Archive is what capabilities say of the archive; nil: none is kept.
	Archive func() *command.Archive
	// Programs lists the programs that the agent works with, for capabilities.
	Programs func() []command.Program
	// Refusal turns every error into a refusal on the wire.
	Refusal func(error) *command.Refusal
	Log     *zap.Logger
	// Tracer continues the traces of commands; nil: there are none.
	Tracer trace.Tracer
}

// Limits of the listener.
const (
	// An API host holds some 200 connections at most.
	maxConnections = 2048
	maxOfAddress   = 512

	maxCommand    = 1 << 20 // bytes of a command
	maxHeader     = 16 << 10
	headerTime    = 5 * time.Second
	bodyTime      = 30 * time.Second
	answerTime    = 3 * time.Minute // longer than any command takes
	idleTime      = 90 * time.Second
	shutdownTime  = 15 * time.Second
	downloadChunk = 1 << 20
	// chunkTime is for an API host to take one chunk of a download, so that one that hangs does not hold a file for ever. It is
	// far above what the slowest customer needs whom an API host lets go on: the kernels between them can hold 17 MB, which are
	// taken first.
	chunkTime = 10 * time.Minute
	// arrivalChunk of what is uploaded must arrive within a time: one that hangs, or trickles, does not hold a file for ever.
	arrivalChunk = 1 << 20
)

// ArrivalTime is what each MiB of an upload has to arrive, where nothing else is set. An API host ends a slow sender much
// earlier.
const ArrivalTime = 5 * time.Minute

// Server answers requests.
type Server struct {
	config Config
	http   *http.Server
	seldom loop.Seldom
	others others
	// patience is for asking PostgreSQL what capabilities say.
	patience *loop.Patience
}

// New makes a server.
func New(c Config) (*Server, error) {
	if c.Secrets == nil {
		return nil, errors.New("the agent's secrets must be set")
	}
	if c.Tracer == nil {
		c.Tracer = trace.Off{}
	}
	s := &Server{config: c, patience: loop.NewPatience()}
	s.http = &http.Server{
		Handler:           s.logged(s.routes()),
		ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader,
	}
	door.Bound(s.http, door.Bounds{All: maxConnections, PerAddress: maxOfAddress}, c.Log)
	return s, nil
}

// Serve answers on a listener until ctx ends, and then lets running requests finish.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	secure := tls.NewListener(l, &tls.Config{
		GetCertificate: s.config.Certificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
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

// routes are all of the agent's. Any other path gets a plain 404, without a refusal.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	for _, q := range s.all() {
		mux.Handle(q.pattern, s.authenticated(func(_ *http.Request, token string) (Handle, error) {
			if !s.knows(token) {
				return nil, nil
			}
			return s.noting(q.handle), nil
		}))
	}
	for _, g := range s.config.Guests {
		mux.Handle(g.Pattern, s.authenticated(func(r *http.Request, token string) (Handle, error) {
			handle, err := g.Enter(r, token)
			if handle == nil || err != nil {
				return nil, err
			}
			return s.ours(handle), nil
		}))
	}
	return mux
}

// all are the routes that need the secret. An agent answers questions about itself in any protocol, and while it is not in
// charge.
func (s *Server) all() []Question {
	all := []Question{{"GET /health", s.health}, Answering(s.capabilities), {"POST /v1/commands", s.ours(s.command)}}
	if s.config.Metrics != nil {
		all = append(all, Question{"GET /metrics", s.metrics})
	}
	for _, q := range s.config.Questions {
		all = append(all, Question{q.pattern, s.ours(func(w http.ResponseWriter, r *http.Request) error {
			if err := s.inCharge(r); err != nil {
				return err
			}
			return q.handle(w, r)
		})})
	}
	return all
}

// Handle answers a request, or returns why not where it has written nothing.
type Handle = func(w http.ResponseWriter, r *http.Request) error

// Guest is a route for who has another token than the control plane. Enter returns what answers who shows it: nil where the token
// does not open the route, without an error.
type Guest struct {
	Pattern string
	Enter   func(r *http.Request, token string) (Handle, error)
}

// knows compares a bearer token with each of the secrets in constant time.
func (s *Server) knows(token string) bool {
	sum, same := sha256.Sum256([]byte(token)), 0
	for _, secret := range s.config.Secrets() {
		known := sha256.Sum256([]byte(secret))
		same |= subtle.ConstantTimeCompare(sum[:], known[:])
	}
	return same == 1
}

// noting has a request of a control plane of another protocol remembered.
func (s *Server) noting(next Handle) Handle {
	return func(w http.ResponseWriter, r *http.Request) error {
		s.others.note(r)
		return next(w, r)
	}
}

// authenticated lets nobody in whose bearer token opens nothing; then nothing of the body is read.
func (s *Server) authenticated(enter func(r *http.Request, token string) (Handle, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		next, err := enter(r, token)
		switch {
		case err != nil:
			s.refuse(w, r, ofAll(r, err))
			return
		case next == nil:
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		door.Admit(r.Context())
		if err := next(w, r); err != nil {
			s.refuse(w, r, err)
		}
	})
}

func write(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		status, text = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that is gone asks again
}

var statuses = map[command.Reason]int{
	command.ReasonStale: http.StatusConflict, command.ReasonFenced: http.StatusConflict,
	command.ReasonConflict: http.StatusConflict, command.ReasonClosed: http.StatusConflict,
	command.ReasonCompleted: http.StatusConflict, command.ReasonNameTaken: http.StatusConflict,
	command.ReasonNotFound: http.StatusNotFound, command.ReasonNoRoute: http.StatusNotFound,
	command.ReasonConnectRequired: http.StatusConflict, command.ReasonDatabaseClosed: http.StatusConflict,
	command.ReasonStorageFull: http.StatusInsufficientStorage, command.ReasonUnavailable: http.StatusServiceUnavailable,
	command.ReasonInvalid: http.StatusBadRequest, command.ReasonFailed: http.StatusUnprocessableEntity,
	command.ReasonOtherProtocol: http.StatusNotImplemented, command.ReasonBusy: http.StatusConflict,
	command.ReasonCrowded: http.StatusServiceUnavailable, command.ReasonUnfinished: http.StatusServiceUnavailable,
	command.ReasonAltered: http.StatusConflict, command.ReasonInService: http.StatusConflict,
	command.ReasonIsolated: http.StatusConflict, command.ReasonBehind: http.StatusConflict,
	command.ReasonIncomplete: http.StatusUnprocessableEntity, command.ReasonStorageAway: http.StatusServiceUnavailable,
	command.ReasonNotRecoverable: http.StatusConflict, command.ReasonTooLarge: http.StatusConflict,
}

// refuse answers with a refusal. Its cause goes to the log only: it names things on the server, but never a secret.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	no := s.config.Refusal(err)
	silent, say := 0, true
	if isOfAll(r) {
		silent, say = s.seldom.Say(string(no.Reason))
	}
	if say {
		s.config.Log.Info("refused", append(described(r), zap.String("path", r.URL.Path), zap.String("reason", string(no.Reason)),
			zap.String("message", no.Message), zap.Int("times", silent+1), zap.Error(err),
			zap.NamedError("cause", errors.Unwrap(err)))...)
	}
	write(w, statuses[no.Reason], no)
}
