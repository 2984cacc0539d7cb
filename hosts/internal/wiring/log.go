// Package wiring holds the parts that hosts are put together from, each once, as fx modules. What a part is made by is a
// plain constructor of its own package; nothing outside hosts knows fx.
package wiring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/repeat"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/ports"
)

// NewLog makes the log of a host: one JSON object a line, in the given files, or on standard error.
func NewLog(level string, files ...string) (*zap.Logger, error) {
	at, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is no level: use debug, info, warn or error", settings.Flag("log-level"), level)
	}
	cfg := zap.NewProductionConfig()
	cfg.Level = zap.NewAtomicLevelAt(at)
	cfg.Sampling = nil // every line of the work on a database counts
	cfg.DisableStacktrace = true
	cfg.EncoderConfig.TimeKey = "at"
	cfg.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	if len(files) > 0 {
		cfg.OutputPaths = files
	}
	return cfg.Build(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return oneLine{c} }))
}

// Journal implements ports.Journal: it logs and counts what the use cases do. Of what fails again and again, it counts all, and
// logs as package repeat says.
type Journal struct {
	log      *zap.Logger
	metadata string // where they are
	failures *repeat.Memory
	counters *metrics.Counters
	servers  func() []metrics.Server // as far as the host has seen them; nil where it does not look at any
}

// NewJournal makes the journal of a host, whose metadata are at the named place.
func NewJournal(log *zap.Logger, r metrics.Registry, metadata string) (*Journal, error) {
	counters, err := metrics.NewCounters(r)
	return &Journal{log: log, metadata: metadata, failures: repeat.New(time.Now), counters: counters}, err
}

// Begin sets the counters of a host that does the work to 0.
func (j *Journal) Begin(kinds []operation.Spec, tasks []string) { j.counters.Begin(kinds, tasks) }

// MeasureServers adds what the host sees of the agents to its metrics, and what the journal counts of their servers. From then
// on, a line about a server has its name. Call it before the first line is logged.
func (j *Journal) MeasureServers(r metrics.Registry, servers func() []metrics.Server) error {
	j.servers = servers
	return metrics.MeasureServers(r, servers, j.counters)
}

// nameOf is what operators call the server of an event; empty where that is not known here.
func (j *Journal) nameOf(e ports.JournalEvent) string {
	if e.ServerName != "" || e.ServerID == "" || j.servers == nil {
		return e.ServerName
	}
	all := j.servers()
	if i := slices.IndexFunc(all, func(s metrics.Server) bool { return s.ID == e.ServerID }); i >= 0 {
		return all[i].Name
	}
	return ""
}

// Log writes one line; a step that went wrong is a warning, and a routine one is for debugging.
func (j *Journal) Log(_ context.Context, e ports.JournalEvent) {
	j.counters.Count(e)
	j.forget(e)
	if e.Err != nil && !e.Told {
		worth, held := j.failures.Failed(sameness(e))
		if !worth {
			return
		}
		e.Repeated = held
	}
	fields := make([]zap.Field, 0, 14)
	for _, f := range []struct{ name, value string }{
		{"databaseId", string(e.DatabaseID)}, {"operationId", string(e.OperationID)}, {"serverId", string(e.ServerID)},
		{"server", j.nameOf(e)}, {"host", e.Host},
		{"roleId", string(e.RoleID)}, {"kind", e.Kind},
		{"webhookId", string(e.WebhookID)}, {"deliveryId", string(e.DeliveryID)}, {"mailId", string(e.MailID)},
		{"namespaceId", string(e.NamespaceID)}, {"requestId", e.RequestID},
	} {
		if f.value != "" {
			fields = append(fields, zap.String(f.name, f.value))
		}
	}
	if e.Epoch > 0 {
		fields = append(fields, zap.Int64("epoch", e.Epoch))
	}
	if e.Repeated > 0 {
		fields = append(fields, zap.Int("repeated", e.Repeated))
	}
	if e.After > 0 {
		fields = append(fields, zap.Duration("after", e.After))
	}
	if errors.Is(e.Err, ports.ErrUnavailable) {
		fields = append(fields, zap.String("metadata", j.metadata))
	}
	switch {
	case e.Err != nil:
		j.log.Warn(e.What, append(fields, zap.Error(e.Err))...)
	case e.Routine:
		j.log.Debug(e.What, fields...)
	default:
		j.log.Info(e.What, fields...)
	}
}

// forget has what failed in a round or an operation be told at once where it fails again after the round was done, or after the
// operation's end.
func (j *Journal) forget(e ports.JournalEvent) {
	switch e.What {
	case "round.done":
		j.failures.EndedAll(named("round.failed", e.Kind))
	case "operation.succeeded", "operation.failed":
		j.failures.EndedAll(named("operation", string(e.OperationID)))
	}
}

// sameness names what a failure is a repetition of: the same thing happened for the same cause to the same operation, login or
// whatever it is about. While the metadata or an agent is away, everything that needs it fails in one way.
func sameness(e ports.JournalEvent) string {
	switch {
	case errors.Is(e.Err, ports.ErrUnavailable):
		return named(e.What)
	case e.What == "round.no_answer":
		return named(e.What, string(e.ServerID))
	case e.DeliveryID != "": // of one operation, several endpoints are told
		return named(e.What, string(e.DeliveryID), causeOf(e.Err))
	case e.OperationID == "" && e.RequestID != "":
		return named(e.What, e.RequestID) // a request is its caller's, not a repetition
	case e.OperationID != "":
		return named("operation", string(e.OperationID), e.What, e.Kind, string(e.RoleID), causeOf(e.Err))
	}
	return named(e.What, e.Kind, string(e.ServerID), string(e.DatabaseID), string(e.RoleID), string(e.WebhookID),
		string(e.DeliveryID), string(e.MailID), string(e.NamespaceID), causeOf(e.Err))
}

// named is a key of the memory, and the beginning of the keys that have further parts.
func named(parts ...string) string { return strings.Join(parts, "\n") + "\n" }

// causeOf is the kind of an error: its text may have what differs each time.
func causeOf(err error) string {
	if state := pgdb.State(err); state != "" {
		return state
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "in time"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return string(fault.CodeOf(err))
}
