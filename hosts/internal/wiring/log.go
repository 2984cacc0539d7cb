// Package wiring holds the parts that hosts are put together from, each once, as fx modules. What a part is made by is a
// plain constructor of its own package; nothing outside hosts knows fx.
package wiring

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/pgherd/pgherd/ports"
)

// NewLog makes the log of a host: one JSON object a line, in the given files, or on standard error.
func NewLog(level string, files ...string) (*zap.Logger, error) {
	at, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("log level %q: use debug, info, warn or error", level)
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
	return cfg.Build()
}

// Journal implements ports.Journal: it logs and counts what the use cases do.
type Journal struct {
	log    *zap.Logger
	steps  *prometheus.CounterVec
	rounds *prometheus.HistogramVec
}

// NewJournal makes the journal of a host.
func NewJournal(log *zap.Logger, metrics prometheus.Registerer) (*Journal, error) {
	steps := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pgherd_steps_total", Help: "Steps of the work on databases, by what happened and the kind of operation.",
	}, []string{"what", "kind"})
	rounds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "pgherd_round_seconds", Help: "How long the rounds of periodic work take, without what they start on servers.",
		Buckets: []float64{.001, .01, .1, 1, 10, 60},
	}, []string{"task"})
	return &Journal{log: log, steps: steps, rounds: rounds}, errors.Join(metrics.Register(steps), metrics.Register(rounds))
}

// Log writes one line; a step that went wrong is a warning, and a routine one is for debugging.
func (j *Journal) Log(_ context.Context, e ports.JournalEvent) {
	j.steps.WithLabelValues(e.What, e.Kind).Inc()
	if e.Took > 0 {
		j.rounds.WithLabelValues(e.Kind).Observe(e.Took.Seconds())
	}
	fields := make([]zap.Field, 0, 10)
	for _, f := range []struct{ name, value string }{
		{"databaseId", string(e.DatabaseID)}, {"operationId", string(e.OperationID)}, {"serverId", string(e.ServerID)},
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
	switch {
	case e.Err != nil:
		j.log.Warn(e.What, append(fields, zap.Error(e.Err))...)
	case e.Routine:
		j.log.Debug(e.What, fields...)
	default:
		j.log.Info(e.What, fields...)
	}
}
