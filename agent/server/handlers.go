package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/health"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	corehealth "github.com/pgherd/pgherd/core/health"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/trace"
)

func (s *Server) health(w http.ResponseWriter, r *http.Request) error {
	onlyAsks(r.Context())
	write(w, http.StatusOK, s.config.Health.ReportWithClients(r.Context()))
	return nil
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	onlyAsks(r.Context())
	s.config.Metrics.ServeHTTP(w, r)
	return nil
}

// postgresTime is what PostgreSQL may take to say how many connections there are. It is shorter than what who asks for
// capabilities waits: a server whose PostgreSQL hangs still has an agent that answers.
const postgresTime = 2 * time.Second

// capabilities answers while PostgreSQL is down too, without what only PostgreSQL knows.
func (s *Server) capabilities(ctx context.Context, _ command.AskCapabilities) (command.Capabilities, error) {
	charge := s.config.InCharge()
	asking, cancel := context.WithTimeout(ctx, postgresTime)
	defer cancel()
	connections, down := loop.Await(asking, s.patience, s.config.Commands.Connections)
	installation, collects, notLogical := "", false, ""
	if charge == nil && down == nil {
		installation, down = loop.Await(asking, s.patience, s.config.Commands.Installation)
	}
	if charge == nil && down == nil {
		collects, down = loop.Await(asking, s.patience, s.config.Commands.CollectsStatements)
	}
	if charge == nil && down == nil && s.config.NotLogical != nil {
		notLogical, down = loop.Await(asking, s.patience, s.config.NotLogical)
	}
	state := command.ServerState{
		InCharge: s.config.Confirmed() == nil, Postgres: health.Answered(down),
		PgBouncer: charge == nil && s.config.PoolerAnswers(),
	}
	err := errors.Join(charge, down)
	if err != nil {
		connections = 0
		s.seldom.Warn(s.config.Log, "capabilities", "capabilities without what PostgreSQL knows", zap.Error(err))
	}
	routes := []string{"GET /healthz"}
	for _, q := range s.all() {
		routes = append(routes, q.pattern)
	}
	slices.Sort(routes)
	var archive *command.Archive
	if s.config.Archive != nil {
		archive = s.config.Archive()
	}
	publicCA := ""
	if s.config.PublicCA != nil {
		publicCA = s.config.PublicCA()
	}
	programs := s.config.Programs()
	return command.Capabilities{
		Version: s.config.Version, Protocol: command.Protocol, Routes: routes, Programs: programs, PostgresVersion: major(programs),
		Connections: connections, Installation: installation, SlowQueries: collects, Storage: s.config.Storage, Archive: archive,
		NotLogical: notLogical, PublicCA: publicCA, State: state, Reasons: s.reasons(),
	}, nil
}

// major is PostgreSQL's major version; 0 until it has answered.
func major(programs []command.Program) int {
	for _, p := range programs {
		if found, err := floors.Parse(p.Version); err == nil && found.Program == floors.PostgreSQL {
			return found.Number[0]
		}
	}
	return 0
}

// reasons are those for which the server is not well, a line each.
func (s *Server) reasons() (lines []string) {
	for _, r := range s.config.Health.Report().Reasons {
		if !corehealth.Code(r.Code).Harmless() {
			lines = append(lines, r.Code+": "+strings.TrimSpace(r.Message))
		}
	}
	return lines
}

// command carries out a command to its end, even if the client gives up: the outcome is then in the ledger.
func (s *Server) command(w http.ResponseWriter, r *http.Request) error {
	var c protocol.Command
	if err := readBody(w, r, &c); err != nil {
		return err
	}
	describe(r, c)
	if err := s.inCharge(r); err != nil {
		return err
	}
	ctx := s.config.Tracer.Under(context.WithoutCancel(r.Context()), r.Header.Get(trace.Header))
	ctx, ended := s.config.Tracer.Begin(ctx, trace.Span{Name: "command " + string(c.Kind), Operation: id.OperationID(c.OperationID)})
	result, err := s.config.Commands.Execute(ctx, c)
	if err != nil {
		ended(string(s.config.Refusal(err).Reason), true)
		return err
	}
	outcome := "done"
	if isRunning(result) {
		outcome = "running"
		onlyAsks(r.Context())
	}
	ended(outcome, false)
	write(w, http.StatusOK, protocol.Reply{Result: result})
	return nil
}

// isRunning reports whether a result says that a job goes on. Its beginning and its end are logged.
func isRunning(result []byte) bool {
	var report struct {
		State string `json:"state"`
	}
	return json.Unmarshal(result, &report) == nil && report.State == "running"
}
