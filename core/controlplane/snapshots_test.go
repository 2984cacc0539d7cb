package controlplane_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/snapshot"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

const installation id.InstallationID = "33333333-3333-4333-8333-333333333333"

// snapper takes snapshots that say how the metadata were.
type snapper struct {
	changes atomic.Int64
	taken   atomic.Int64
	checked atomic.Int64
	busy    atomic.Bool // another process takes one
}

func (*snapper) Installation(context.Context) (id.InstallationID, error) { return installation, nil }

func (s *snapper) Changes(context.Context) (string, error) { return fmt.Sprint(s.changes.Load()), nil }

func (s *snapper) Turn(ctx context.Context, do func(context.Context) error) (bool, error) {
	if s.busy.Swap(true) {
		return false, nil
	}
	defer s.busy.Store(false)
	return true, do(ctx)
}

func (s *snapper) Take(_ context.Context, name snapshot.Name) (ports.Snapshot, error) {
	s.taken.Add(1)
	return taken{bytes.NewReader([]byte("snapshot " + string(name)))}, nil
}

func (s *snapper) Check(_ context.Context, name snapshot.Name, r io.Reader) error {
	s.checked.Add(1)
	if text, err := io.ReadAll(r); err != nil || string(text) != "snapshot "+string(name) {
		return fmt.Errorf("%q, %w", text, err)
	}
	return nil
}

type taken struct{ *bytes.Reader }

func (taken) Close() error { return nil }

// snapshotWorld is an installation that takes snapshots.
type snapshotWorld struct {
	*world
	snapper *snapper
	log     *spy
}

func newSnapshotWorld(t *testing.T) *snapshotWorld {
	t.Helper()
	w := &snapshotWorld{world: newWorld(t), snapper: &snapper{}, log: &spy{}}
	w.ports.Snapshots, w.ports.Journal = w.snapper, w.log
	w.ControlPlane = w.process(quick())
	return w
}

// kept are the names of the snapshots that a server keeps.
func (w *snapshotWorld) kept(on server.Server) (names []snapshot.Name) {
	w.t.Helper()
	for _, k := range must(ports.Ask(w.ctx, must(w.fleet.Agent(on))(w.t), command.AskSnapshots{}))(w.t).Snapshots {
		names = append(names, k.Name)
	}
	return names
}

// passes lets so much time pass, in rounds of all processes.
func (w *snapshotWorld) passes(d time.Duration, all ...*controlplane.ControlPlane) {
	w.t.Helper()
	for end := w.clock.Now().Add(d); w.clock.Now().Before(end); w.clock.Advance(10 * time.Second) {
		for _, cp := range all {
			_ = cp.Rounds.Once(w.ctx) // what fails is told
		}
	}
}

// Servers keep snapshots: every five minutes while something changes, and every half hour while nothing does, however many
// processes take them. Each day one is read back.
func TestSnapshotsAreTaken(t *testing.T) {
	w := newSnapshotWorld(t)
	second, _ := w.another("two", 0)
	at, known := w.Snapshots.Newest()
	equal(t, "known before anything was asked", known || !at.IsZero(), false)
	other := w.process(quick())
	all := []*controlplane.ControlPlane{w.ControlPlane, other}
	w.passes(time.Minute, all...)
	equal(t, "taken at once", w.snapper.taken.Load(), int64(1))
	equal(t, "read back at once", w.snapper.checked.Load() > 0, true)
	equal(t, "on both servers", slices.Equal(w.kept(w.machine), w.kept(second)), true)
	for range 60 {
		w.snapper.changes.Add(1)
		w.passes(time.Minute, all...)
	}
	if n := w.snapper.taken.Load(); n < 11 || n > 13 {
		t.Errorf("%d are taken in an hour of changes", n)
	}
	equal(t, "few are kept", len(w.kept(w.machine)) <= 5, true)
	w.passes(30*time.Minute, all...)
	quiet := w.snapper.taken.Load()
	w.passes(3*time.Hour, all...)
	if n := w.snapper.taken.Load() - quiet; n < 5 || n > 7 {
		t.Errorf("%d are taken in three quiet hours", n)
	}
	for _, cp := range all {
		at, known := cp.Snapshots.Newest()
		equal(t, "the newest is known", known && w.clock.Now().Sub(at) < time.Hour, true)
	}
	checked := w.snapper.checked.Load()
	w.passes(25*time.Hour, w.ControlPlane)
	equal(t, "read back in a day", w.snapper.checked.Load()-checked, 1)
	for _, wrong := range []string{"snapshot.not_kept", "snapshot.unreadable", "round.failed"} {
		equal(t, wrong, strings.Contains(w.log.told(), wrong), false)
	}
	w.wantFindings()
}

// A server that does not keep it is told, and the others do; the doctor finds what has no fresh one.
func TestAServerThatKeepsNoSnapshot(t *testing.T) {
	w := newSnapshotWorld(t)
	w.passes(10*time.Second, w.ControlPlane)
	second, fake := w.another("two", 0)
	keepsNone(fake, ports.ErrAgentUnreachable)
	for range 3 {
		w.snapper.changes.Add(1)
		w.passes(30*time.Minute, w.ControlPlane)
	}
	equal(t, "kept by one", len(w.kept(w.machine)) >= 3, true)
	equal(t, "kept by the other", len(w.kept(second)), 0)
	equal(t, "told", strings.Contains(w.log.told(), "snapshot.not_kept"), true)
	found := must(w.Operator.Examine(w.ctx, second, brief))(t)
	equal(t, "found on the other", len(found) == 1 && found[0].Code == doctor.SnapshotOld, true)
	w.wantFindings()
	k := must(w.Operator.Snapshots.Take(w.ctx))(t)
	equal(t, "kept on an order", slices.Equal(k.Servers, []string{"one"}) && k.Bytes > 0, true)
}

// Without a server that keeps it, nothing is taken to be safe, and it is tried again.
func TestNoServerKeepsASnapshot(t *testing.T) {
	w := newSnapshotWorld(t)
	keepsNone(w.server, errors.New("reset"))
	w.passes(10*time.Minute, w.ControlPlane)
	if n := w.snapper.taken.Load(); n < 9 || n > 11 {
		t.Errorf("%d are taken in ten minutes of failure", n)
	}
	at, known := w.Snapshots.Newest()
	equal(t, "there is none", known && at.IsZero(), true)
	refused(t, errOf(w.Operator.Snapshots.Take(w.ctx)), fault.AgentError)
	w.snapper.busy.Store(true)
	refused(t, errOf(w.Operator.Snapshots.Take(w.ctx)), fault.ServerBusy)
	w.snapper.busy.Store(false)
	w.server.OnCall(nil)
	w.passes(2*time.Minute, w.ControlPlane)
	equal(t, "kept in the end", len(w.kept(w.machine)), 1)
}

// keepsNone has a server fail to keep snapshots.
func keepsNone(s *fakeagent.Server, err error) {
	s.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == "KeepSnapshot" {
			f.Before = err
		}
		return f
	})
}
