package crash_test

import (
	"database/sql"
	"slices"
	"testing"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/controlplane/querytimeouts"
	"github.com/pgherd/pgherd/core/controlplane/settings"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/querytimeout"
)

// timeoutFlow chooses another profile of query timeouts.
type timeoutFlow struct{ guest }

func (f *timeoutFlow) ready(t *testing.T, w *world) {
	f.guest = newGuest(t, w, "timeouts")
	noError(t, f.setTimeouts(t, w.api, querytimeout.Standard, "before"))
	f.times(t, w, querytimeout.Standard)
}

func (f *timeoutFlow) act(t *testing.T, _ *world, api *stack.Host) {
	mayHaveFailed(t, f.setTimeouts(t, api, querytimeout.Short, "change"))
}

// check also repeats the request, which begins nothing anew.
func (f *timeoutFlow) check(t *testing.T, w *world, api *stack.Host) {
	f.times(t, w, querytimeout.Short)
	done := f.timeouts(t, api).Operation
	noError(t, f.setTimeouts(t, api, querytimeout.Short, "change"))
	if again := f.timeouts(t, api).Operation; *again != *done || done.Status != operation.Succeeded {
		t.Errorf("the change is %+v, and after its repetition %+v", done, again)
	}
}

func (g guest) setTimeouts(t *testing.T, api *stack.Host, p querytimeout.Profile, key string) error {
	t.Helper()
	body := wire.SetQueryTimeouts{Profile: p}
	_, err := g.user.at(api).QueryTimeouts.Set(soon(t), g.db.ID, body, apiclient.IdempotencyKey(key))
	return err
}

func (g guest) timeouts(t *testing.T, api *stack.Host) wire.QueryTimeouts {
	t.Helper()
	return must(g.user.at(api).QueryTimeouts.Get(soon(t), g.db.ID))(t)
}

// times fails the test unless record, server and a new session of the owner have the limits of a profile.
func (g guest) times(t *testing.T, w *world, want querytimeout.Profile) {
	t.Helper()
	limit := querytimeout.Policy[want].Statement.Milliseconds()
	seen := g.timeouts(t, w.api)
	if seen.DesiredProfile != want || seen.EffectiveProfile != want || seen.Current == nil ||
		seen.Current.StatementTimeoutMs != limit {
		t.Errorf("the record is %+v, in force %+v; want %s", seen, seen.Current, want)
	}
	var shown int64
	const query = "SELECT (1000 * extract(epoch FROM current_setting('statement_timeout')::interval))::bigint"
	noError(t, w.customer(t, g.db.ConnectionString).QueryRowContext(soon(t), query).Scan(&shown))
	if shown != limit {
		t.Errorf("a session has %d ms, want %d", shown, limit)
	}
}

// refusedTimeouts is a change that PostgreSQL refuses: the owner's login is a superuser by then, which the agent may not change.
type refusedTimeouts struct{ timeoutFlow }

func (f *refusedTimeouts) ready(t *testing.T, w *world) {
	f.timeoutFlow.ready(t, w)
	f.elevate(t, w, "SUPERUSER")
}

func (f *refusedTimeouts) elevate(t *testing.T, w *world, word string) {
	t.Helper()
	must(w.server.ExecContext(soon(t), "ALTER ROLE "+pq.QuoteIdentifier(f.db.Username)+" "+word))(t)
}

func (f *refusedTimeouts) act(t *testing.T, w *world, api *stack.Host) {
	err := f.setTimeouts(t, api, querytimeout.Short, "change")
	if mayHaveFailed(t, err); err == nil {
		t.Error("a change is done that PostgreSQL refuses")
	}
}

// repeat removes the obstacle when the change has failed: the profile of before is in effect by itself.
func (f *refusedTimeouts) repeat(t *testing.T, w *world) {
	eventually(t, "failed", func() (bool, string) {
		change := f.timeouts(t, w.api).Operation
		return change.Status == operation.Failed, string(change.Status)
	})
	f.elevate(t, w, "NOSUPERUSER")
}

func (f *refusedTimeouts) check(t *testing.T, w *world, api *stack.Host) {
	f.times(t, w, querytimeout.Standard)
	noError(t, f.setTimeouts(t, api, querytimeout.Short, "another"))
	f.times(t, w, querytimeout.Short)
}

// shutFlow closes a database as a quota does: the record says so, and a round has the server enforce it.
type shutFlow struct {
	guest
	before *sql.Conn
}

func (f *shutFlow) ready(t *testing.T, w *world) {
	f.guest = newGuest(t, w, "shut")
	f.before = f.stay(t)
}

func (f *shutFlow) act(t *testing.T, w *world, _ *stack.Host) { f.store(t, w, "closed") }

func (f *shutFlow) store(t *testing.T, w *world, status string) {
	t.Helper()
	must(w.meta.ExecContext(soon(t), `UPDATE databases SET storage_status = $2, settings_generation = settings_generation + 1
		WHERE id = $1`, f.db.ID, status))(t)
}

// repeat opens the database again when it is closed.
func (f *shutFlow) repeat(t *testing.T, w *world) {
	w.quiet(t)
	isEnded(t, f.before)
	if f.comesIn(t, w) == nil {
		t.Error("a customer gets in to a database that is shut")
	}
	f.store(t, w, "ok")
}

func (f *shutFlow) check(t *testing.T, w *world, _ *stack.Host) { noError(t, f.comesIn(t, w)) }

func configuring() []killing {
	cases := []killing{ // the agent's own tests kill it at its other points
		kill(inAgent, "timeouts", &timeoutFlow{}, crash.SettingsStored), kill(inAgent, "shut", &shutFlow{}, crash.SettingsClosed),
	}
	points := append(around(querytimeouts.Kind, "configure"), work.Reserved(querytimeouts.Kind), settings.CrashApplied)
	for _, p := range points {
		cases = append(cases, kill(inAPI, "timeouts", &timeoutFlow{}, p))
	}
	done, refused := func() flow { return &timeoutFlow{} }, func() flow { return &refusedTimeouts{} }
	return slices.Concat(cases,
		aroundCommits(inAPI, querytimeouts.Kind, "timeouts", done, "succeeded"),
		aroundCommits(inAPI, querytimeouts.Kind, "refused timeouts", refused, "failed"))
}
