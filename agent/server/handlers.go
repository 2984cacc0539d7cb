package server

import (
	"context"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

func (s *Server) health(w http.ResponseWriter, r *http.Request) error {
	onlyAsks(r.Context())
	report, err := s.config.Health.Report(r.Context())
	if err != nil {
		s.config.Log.Sugar().Warnw("degraded", "error", err)
	}
	write(w, http.StatusOK, report)
	return nil
}

// capabilities answers while PostgreSQL is down too, without what only PostgreSQL knows.
func (s *Server) capabilities(ctx context.Context, _ command.AskCapabilities) (command.Capabilities, error) {
	var connections int
	err := s.config.InCharge()
	if err == nil {
		connections, err = s.config.Commands.Connections(ctx)
	}
	if err != nil {
		s.config.Log.Sugar().Warnw("capabilities without connections", "error", err)
	}
	routes := []string{"GET /healthz"}
	for _, q := range s.all() {
		routes = append(routes, q.pattern)
	}
	slices.Sort(routes)
	return command.Capabilities{
		Version: s.config.Version, Routes: routes, Commands: s.config.Commands.Commands(), Programs: s.config.Programs(),
		Connections: connections,
	}, nil
}

// command carries out a command to its end, even if the client gives up: the outcome is then in the ledger.
func (s *Server) command(w http.ResponseWriter, r *http.Request) error {
	var c protocol.Command
	if err := readBody(w, r, &c); err != nil {
		return err
	}
	describe(r, c)
	if err := s.config.InCharge(); err != nil {
		return err
	}
	result, err := s.config.Commands.Execute(context.WithoutCancel(r.Context()), c)
	if err != nil {
		return err
	}
	if c.Kind == (command.Backup{}).About().Kind && isRunning(result) {
		onlyAsks(r.Context())
	}
	write(w, http.StatusOK, protocol.Reply{Result: result})
	return nil
}

// isRunning reports whether a backup goes on. Its beginning and its end are logged.
func isRunning(result []byte) bool {
	var report command.BackupReport
	return json.Unmarshal(result, &report) == nil && report.State == command.BackupRunning
}
