package health

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/health"
)

// Of a check that fails, one that hangs and overlooks its context, and one that finds what is harmless, each has its own part in
// a report that is there at once; and the log tells of each once.
func TestEachCheckHasItsPartInTheReport(t *testing.T) {
	core, log := observer.New(zap.InfoLevel)
	var fails atomic.Bool
	fails.Store(true)
	looks := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	w := NewWatch(&Collector{Machine: Host{DataDir: "/"}, Maintenance: silent(t), Pooler: somePooler{}}, zap.New(core),
		Check{Name: "fine", Code: health.LoginFailing, Every: time.Hour, Limit: time.Second, Look: looks(nil)},
		Check{Name: "dump", Code: health.DumpUnusable, Every: 10 * time.Millisecond, Limit: time.Second,
			Look: func(context.Context) error {
				if fails.Load() {
					return errors.New("no pg_dump")
				}
				return nil
			}},
		Check{Name: "stuck", Code: health.BackupsUnwritable, Every: time.Hour, Limit: time.Millisecond,
			Look: func(context.Context) error { select {} }},
		Check{Name: "sold", Every: time.Hour, Limit: time.Second, Look: looks(Find(health.Oversold, "too many"))},
		Check{Name: "quiet", Every: time.Hour, Limit: time.Second, Look: looks(errors.New("nobody needs to know"))},
	)
	if r := w.Report(); r.Status != "degraded" || len(r.Reasons) != 1 || r.Reasons[0].Code != string(health.FiguresMissing) {
		t.Errorf("before the first look: %+v", r)
	}
	go w.Run(t.Context())
	codes := func() (all []health.Code) {
		for _, r := range w.Reasons() {
			all = append(all, r.Code)
		}
		return all
	}
	want := []health.Code{health.DumpUnusable, health.FiguresMissing, health.CheckHangs, health.Oversold}
	check.Eventually(t, "the reasons are not all there", func() bool { return slices.Equal(codes(), want) })
	began := time.Now()
	report := w.Report()
	if took := time.Since(began); took > 100*time.Millisecond {
		t.Errorf("the report took %s", took)
	}
	ok := map[string]bool{"fine": true, "sold": true}
	for _, c := range report.Checks {
		if c.OK != ok[c.Name] || (c.AgeSeconds != nil) != ok[c.Name] {
			t.Errorf("check %+v", c)
		}
	}
	if report.Status != "degraded" || report.ServerDisk.TotalBytes == 0 {
		t.Errorf("%+v", report)
	}
	fails.Store(false)
	check.Eventually(t, "the end of a reason is not logged", func() bool {
		return log.FilterMessage("what was not as it should be is over").FilterField(
			zap.String("reason", string(health.DumpUnusable))).Len() == 1
	})
	if n := log.FilterMessage("the server is not as it should be").Len(); n != len(want) {
		t.Errorf("%d lines about %d reasons", n, len(want))
	}
}

// listed is a PgBouncer whose list of clients counts how often it is asked for.
type listed struct {
	somePooler
	lists   *atomic.Int32
	failing error
}

func (l listed) Clients(ctx context.Context) ([]protocol.PgBouncerClient, error) {
	l.lists.Add(1)
	clients, _ := l.somePooler.Clients(ctx)
	return clients, l.failing
}

// Clients are listed for who asks for them, never in the background; where that fails, PgBouncer runs all the same.
func TestClientsAreListedOnlyForWhoAsks(t *testing.T) {
	var lists atomic.Int32
	background := &Collector{Machine: Host{DataDir: "/"}, Maintenance: silent(t), Pooler: listed{lists: &lists}}
	_, _ = background.Report(t.Context())
	w := NewWatch(background, zap.NewNop())
	if r := w.ReportWithClients(t.Context()); r.PgBouncerClientCount != 0 || lists.Load() != 0 {
		t.Errorf("before anybody knows whether PgBouncer runs: %d lists, %+v", lists.Load(), r)
	}
	for _, c := range []struct {
		failing error
		clients int
		status  health.Status
		reasons []protocol.HealthReason
	}{
		{nil, 4, health.Healthy, []protocol.HealthReason{}},
		{errors.New("too slow"), 0, health.Degraded,
			[]protocol.HealthReason{{Code: string(health.FiguresMissing), Message: "health: clients: too slow"}}},
	} {
		lists.Store(0)
		w := NewWatch(&Collector{Pooler: listed{lists: &lists, failing: c.failing}}, zap.NewNop())
		w.figures.Store(&figures{report: protocol.Health{PostgresConnected: true, CapacityKnown: true, PgBouncerRunning: true}})
		if r := w.Report(); r.Status != string(health.Healthy) || lists.Load() != 0 {
			t.Errorf("without clients: %d lists, %+v", lists.Load(), r)
		}
		r := w.ReportWithClients(t.Context())
		if r.Status != string(c.status) || !r.PgBouncerRunning || !slices.Equal(r.Reasons, c.reasons) {
			t.Errorf("%v: %+v", c.failing, r)
		}
		if len(r.PgBouncerClients) != c.clients || r.PgBouncerClientCount != c.clients || lists.Load() != 1 {
			t.Errorf("%v: %d lists, %+v", c.failing, lists.Load(), r)
		}
	}
}
