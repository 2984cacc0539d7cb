package wiring_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lib/pq"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
	"github.com/pgherd/pgherd/ports"
)

func journal(t *testing.T) (*wiring.Journal, *observer.ObservedLogs, metrics.Registry) {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	r := metrics.NewRegistry("", "")
	return check.Must(wiring.NewJournal(zap.New(core), r, "database pgherd at db1:5432"))(t), logs, r
}

// Twenty tasks fail every two seconds and two queues twice a second, while the metadata database is away: each kind of failure is
// one line, which says where the metadata are, and all of them are counted.
func TestAnOutageOfTheMetadataIsAFewLines(t *testing.T) {
	j, logs, r := journal(t)
	away := fmt.Errorf("list: %w: EOF", ports.ErrUnavailable)
	const seconds = 30
	for range seconds / 2 {
		for task := range 20 {
			j.Log(t.Context(), ports.JournalEvent{What: "round.failed", Kind: fmt.Sprint("task ", task), Err: away})
		}
	}
	for range seconds * 2 {
		j.Log(t.Context(), ports.JournalEvent{What: "webhook.queue_unreadable", Err: away})
		j.Log(t.Context(), ports.JournalEvent{What: "queue.unreadable", Err: away})
	}
	if logs.Len() != 3 {
		t.Errorf("%d lines: %v", logs.Len(), logs.All())
	}
	for _, line := range logs.All() {
		if line.ContextMap()["metadata"] != "database pgherd at db1:5432" {
			t.Errorf("%v does not say where they are", line.ContextMap())
		}
	}
	counts(t, r, map[string]float64{
		"pgherd_steps_total task 3 round.failed":       seconds / 2,
		"pgherd_steps_total  webhook.queue_unreadable": 2 * seconds,
	})
}

// A line about a server says what operators call it.
func TestALineNamesItsServer(t *testing.T) {
	j, logs, r := journal(t)
	check.NoError(t, j.MeasureServers(r, func() []metrics.Server { return []metrics.Server{{ID: "s1", Name: "db1"}} }))
	for _, e := range []ports.JournalEvent{
		{What: "a", ServerID: "s1"},
		{What: "b", ServerID: "s1", ServerName: "told"}, {What: "c", ServerID: "s2"}, {What: "d"},
	} {
		j.Log(t.Context(), e)
	}
	var names []string
	for _, line := range logs.All() {
		names = append(names, fmt.Sprint(line.ContextMap()["server"]))
	}
	if got := strings.Join(names, " "); got != "db1 told <nil> <nil>" {
		t.Errorf("the servers are %s", got)
	}
}

// An error of several causes is in one line.
func TestErrorsAreInOneLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	log := check.Must(wiring.NewLog("info", file))(t)
	joined := errors.Join(errors.New("one"), errors.New("two"))
	log.With(zap.NamedError("before", joined)).Info("told", zap.Error(joined))
	log.Debug("not told", zap.Error(joined))
	text := string(check.Must(os.ReadFile(file))(t))
	if !strings.Contains(text, `"before":"one; two","error":"one; two"`) || strings.Count(text, "\n") != 1 {
		t.Error(text)
	}
}

// What fails for one database or operation says nothing about another, and each step of a request is its caller's.
func TestOnlyRepetitionsAreHeldBack(t *testing.T) {
	j, logs, _ := journal(t)
	failed := errors.New("no")
	for _, e := range []ports.JournalEvent{
		{What: "operation.unconfirmed", OperationID: "1", DatabaseID: "a"},
		{What: "operation.unconfirmed", OperationID: "2", DatabaseID: "b"},
		{What: "size.unknown", DatabaseID: "a"}, {What: "size.unknown", DatabaseID: "b"},
		{What: "ci_token.refused", NamespaceID: "n", RequestID: "1"}, {What: "ci_token.refused", NamespaceID: "n", RequestID: "2"},
		{What: "round.no_answer", ServerID: "s", Kind: "sizes"}, {What: "round.no_answer", ServerID: "t", Kind: "sizes"},
	} {
		e.Err = failed
		j.Log(t.Context(), e)
	}
	if logs.Len() != 8 {
		t.Errorf("%d lines, want 8", logs.Len())
	}
	for _, e := range []ports.JournalEvent{
		{What: "operation.unconfirmed", OperationID: "1", DatabaseID: "a"}, {What: "size.unknown", DatabaseID: "a"},
		{What: "round.no_answer", ServerID: id.ServerID("s"), Kind: "another task"},
	} {
		e.Err = failed
		j.Log(t.Context(), e)
	}
	if logs.Len() != 8 {
		t.Errorf("repetitions were logged: %v", logs.All()[8:])
	}
}

// A failure with another cause, or after the work was done in between, is a line at once; the same again is none.
func TestAnotherCauseIsALine(t *testing.T) {
	j, logs, _ := journal(t)
	a, b := fault.New(fault.AgentError, "a %d", 1), errors.New("b")
	rows := &pq.Error{Code: "42P01"}
	round := func(kind string, err error) ports.JournalEvent {
		if err == nil {
			return ports.JournalEvent{What: "round.done", Kind: kind, Routine: true}
		}
		return ports.JournalEvent{What: "round.failed", Kind: kind, Err: err}
	}
	step := func(err error) ports.JournalEvent {
		return ports.JournalEvent{What: "operation.unconfirmed", Kind: "backup", OperationID: "1", Err: err}
	}
	for _, c := range []struct {
		e    ports.JournalEvent
		line bool
	}{
		{round("sizes", a), true},
		{round("sizes", fault.New(fault.AgentError, "a %d", 2)), false},
		{round("sizes", b), true},
		{round("sizes", fmt.Errorf("read: %w", rows)), true},
		{round("sizes", a), false},
		{round("sizes of all", a), true},
		{round("sizes", nil), false},
		{round("sizes", a), true},
		{round("sizes of all", a), false},
		{step(a), true}, {step(a), false}, {step(b), true},
	} {
		before := logs.Len()
		if j.Log(t.Context(), c.e); logs.Len() > before != c.line {
			t.Errorf("%s %s %v: a line is %v", c.e.What, c.e.Kind, c.e.Err, !c.line)
		}
	}
	j.Log(t.Context(), ports.JournalEvent{What: "operation.failed", Kind: "backup", OperationID: "1", Err: a})
	before := logs.Len()
	if j.Log(t.Context(), step(a)); logs.Len() == before {
		t.Error("what failed after the operation's end is no line")
	}
}

// A failed verification is another matter than a backup that could not be made.
func TestFailedBackupsAreCountedByReason(t *testing.T) {
	j, _, r := journal(t)
	j.Begin([]operation.Spec{{Kind: "backup"}}, []string{"sizes"})
	check.NoError(t, j.MeasureServers(r, func() []metrics.Server {
		return []metrics.Server{{ID: "1", Name: "one"}, {ID: "2", Name: "two"}}
	}))
	counts(t, r, map[string]float64{
		"pgherd_backups_failed_total not_verified one": 0, "pgherd_backups_failed_total storage_full one": 0,
		"pgherd_backups_failed_total storage_away one": 0,
		"pgherd_backups_failed_total other one":        0, "pgherd_steps_total backup operation.failed": 0,
		"pgherd_steps_total sizes round.failed": 0, "pgherd_steps_total lifecycle lifecycle.not_undone": 0,
		"pgherd_server_steps_total one drill.failed": 0,
	})
	j.Log(t.Context(), ports.JournalEvent{What: "drill.failed", ServerID: "2"})
	j.Log(t.Context(), ports.JournalEvent{What: "drill.proven", ServerID: "1"})
	for code, kinds := range map[fault.Code][]string{
		fault.BackupNotVerified: {"backup", "delete", "restore"}, fault.BackupStorageFull: {"backup"},
		fault.BackupStorageUnavailable: {"backup", "delete"},
		fault.AgentError:               {"backup", "delete"},
	} {
		for _, kind := range kinds {
			j.Log(t.Context(), ports.JournalEvent{What: "operation.failed", Kind: kind, ServerID: "1", Err: fault.New(code, "x")})
		}
	}
	counts(t, r, map[string]float64{
		"pgherd_backups_failed_total not_verified one": 2, "pgherd_backups_failed_total storage_full one": 1,
		"pgherd_backups_failed_total storage_away one": 2, "pgherd_backups_failed_total other one": 1,
		"pgherd_backups_failed_total other two": 0, "pgherd_server_steps_total one operation.failed": 8,
		"pgherd_server_steps_total two operation.failed": 0, "pgherd_server_steps_total two drill.failed": 1,
		"pgherd_server_steps_total one drill.failed": 0, "pgherd_steps_total  drill.failed": 1,
	})
}

// counts compares counters, each named with the values of its labels.
func counts(t *testing.T, r metrics.Registry, want map[string]float64) {
	t.Helper()
	got := map[string]float64{}
	for _, f := range check.Must(r.Gather())(t) {
		for _, m := range f.GetMetric() {
			name := []string{f.GetName()}
			for _, l := range m.GetLabel() {
				name = append(name, l.GetValue())
			}
			got[strings.Join(name, " ")] = m.GetCounter().GetValue()
		}
	}
	for name, value := range want {
		if n, there := got[name]; !there || n != value {
			t.Errorf("%q is %v (%v), want %v", name, n, there, value)
		}
	}
}
