package health

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/health"
)

// Watch keeps a report that is always at hand. Each check runs by itself, so that one that hangs holds up no other, and nobody
// who asks for the report.
type Watch struct {
	collector *Collector
	log       *zap.Logger
	checks    []*running
	figures   atomic.Pointer[figures]
	seldom    loop.Seldom
}

type figures struct {
	report protocol.Health
	err    error
}

const (
	figuresEvery = 3 * time.Second
	// logEvery is how soon the log says what has become of a server.
	logEvery = time.Second
)

// NewWatch makes a watch; nothing is looked at before Run.
func NewWatch(c *Collector, log *zap.Logger, checks ...Check) *Watch {
	w := &Watch{collector: c, log: log}
	collect := Check{
		Name: "figures", Code: health.FiguresMissing, Every: figuresEvery, Limit: partTime + time.Second,
		Look: func(ctx context.Context) error {
			report, err := c.Report(ctx)
			w.figures.Store(&figures{report, err})
			return err
		},
	}
	for _, check := range append([]Check{collect}, checks...) {
		w.checks = append(w.checks, &running{Check: check})
	}
	return w
}

// Run has everything looked at until ctx ends. A look that hangs is not waited for.
func (w *Watch) Run(ctx context.Context) {
	for _, check := range w.checks {
		go check.repeat(ctx)
	}
	known := make(map[health.Code]bool)
	for loop.Wait(ctx, logEvery) == nil {
		known = w.tell(known)
	}
}

// States lists what is known of the checks, in their order.
func (w *Watch) States() []State {
	now, all := time.Now(), make([]State, 0, len(w.checks))
	for _, check := range w.checks {
		all = append(all, check.state(now))
	}
	return all
}

// Reasons are those of all checks, in the order of their codes.
func (w *Watch) Reasons() []health.Reason { return reasonsOf(w.States()) }

func reasonsOf(states []State) []health.Reason {
	reasons := []health.Reason{}
	for _, s := range states {
		if s.Reason != nil && (s.Reason.Code == health.CheckHangs || !has(reasons, s.Reason.Code)) {
			reasons = append(reasons, *s.Reason)
		}
	}
	slices.SortStableFunc(reasons, func(a, b health.Reason) int {
		return slices.Index(health.Codes, a.Code) - slices.Index(health.Codes, b.Code)
	})
	return reasons
}

// ReportWithClients is the newest report with PgBouncer's clients, for whose list it waits a short time. Where PgBouncer is not
// running, it is not asked.
func (w *Watch) ReportWithClients(ctx context.Context) protocol.Health {
	report := w.Report()
	if !report.PgBouncerRunning {
		return report
	}
	if err := w.collector.AddClients(ctx, &report); err != nil {
		return w.report(State{Reason: &health.Reason{Code: health.FiguresMissing, Message: fault.Line(err)}})
	}
	return report
}

// Report is the newest report, without PgBouncer's clients. It waits for nothing.
func (w *Watch) Report() protocol.Health { return w.report() }

// report is the newest report, with the reasons of more than the checks.
func (w *Watch) report(more ...State) protocol.Health {
	states, found := w.States(), w.figures.Load()
	observed := health.Observed{Reasons: reasonsOf(slices.Concat(states, more))}
	report := protocol.Health{PgBouncerPools: []protocol.PgBouncerPool{}, PgBouncerClients: []protocol.PgBouncerClient{}}
	if found == nil {
		if len(observed.Reasons) == 0 {
			observed.Reasons = append(observed.Reasons, health.Reason{
				Code: health.FiguresMissing, Message: "the agent has just begun to collect figures",
			})
		}
	} else {
		report = found.report
		observed.PostgresConnected, observed.CapacityKnown = report.PostgresConnected, report.CapacityKnown
		// The watch over PgBouncer knows of its end sooner.
		observed.PoolerRunning = report.PgBouncerRunning &&
			!has(observed.Reasons, health.PoolerDown, health.PoolerHangs, health.PoolerLeaving)
		report.PgBouncerRunning = observed.PoolerRunning
	}
	report.Status = string(health.StatusOf(observed))
	report.Reasons = make([]protocol.HealthReason, 0, len(observed.Reasons))
	for _, r := range observed.Reasons {
		report.Reasons = append(report.Reasons, protocol.HealthReason{Code: string(r.Code), Message: r.Message})
	}
	report.Checks = make([]protocol.HealthCheck, 0, len(states))
	for _, s := range states {
		c := protocol.HealthCheck{Name: s.Name, OK: s.OK}
		if !s.Succeeded.IsZero() {
			age := time.Since(s.Succeeded).Seconds()
			c.AgeSeconds = &age
		}
		report.Checks = append(report.Checks, c)
	}
	return report
}

func has(reasons []health.Reason, codes ...health.Code) bool {
	return slices.ContainsFunc(reasons, func(r health.Reason) bool { return slices.Contains(codes, r.Code) })
}

// tell logs the reasons that have come since the last call, and of those that were logged the ones that have gone. It returns
// those that there are, and whether they were logged.
func (w *Watch) tell(known map[health.Code]bool) map[health.Code]bool {
	now := make(map[health.Code]bool)
	for _, r := range w.Reasons() {
		logged, there := known[r.Code]
		if _, twice := now[r.Code]; !there && !twice {
			var silent int
			if silent, logged = w.seldom.Say(string(r.Code)); logged {
				w.log.Warn("the server is not as it should be", zap.String("reason", string(r.Code)),
					zap.String("message", strings.TrimSpace(r.Message)), zap.Int("times", silent+1))
			}
		}
		now[r.Code] = logged || now[r.Code]
	}
	for _, code := range slices.Sorted(maps.Keys(known)) {
		if _, there := now[code]; !there && known[code] {
			w.log.Info("what was not as it should be is over", zap.String("reason", string(code)))
		}
	}
	return now
}
