package controlplane_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// archiveKey is what the metadata have for a server.
func (w *world) archiveKey(s server.Server) string {
	w.t.Helper()
	return string(must(w.ports.Secrets.Open(s.SealedArchiveKey, s.ArchiveContext()))(w.t))
}

// Each server has a key of its own, which stays whatever is changed, and which nobody is shown.
func TestAServerHasAKeyForItsArchive(t *testing.T) {
	w := newWorld(t)
	key := w.archiveKey(w.machine)
	ok(t, command.SetArchiveKey{Key: key}.Check())
	two := must(w.Operator.AddServer(w.ctx, newServer("two")))(t)
	equal(t, "another server's is the same", w.archiveKey(two) == key, false)
	capacity := 7
	must(w.Operator.SetServer(w.ctx, w.machine.ID, operator.ServerChange{
		Secret: agentSecret + "0", CA: new(string), PublicHost: "moved", Capacity: &capacity, Unchecked: true,
	}))(t)
	w.Monitor.Once(w.ctx)
	equal(t, "after a change", w.archiveKey(w.listedServer()), key)
	for _, e := range must(w.Operator.InstallationAudit(w.ctx, ports.Page{}))(t) {
		for _, text := range e.What.Details {
			if strings.Contains(text, key) || strings.Contains(text, string(w.machine.SealedArchiveKey)) {
				t.Errorf("%s shows the key", e.What.Action)
			}
		}
	}
}

// An agent gets the key as soon as it is seen, again until it has it, and once.
func TestAnArchiveGetsItsKey(t *testing.T) {
	w, log := newWorld(t), &spy{}
	w.ports.Journal = log
	monitor := w.process(quick()).Monitor
	w.server.SetArchiving(false)
	monitor.Once(w.ctx)
	equal(t, "sent where no archive is kept", w.server.Calls("SetArchiveKey"), 0)
	w.server.SetArchiving(true)
	w.failing("SetArchiveKey", 0, ports.ErrAgentUnreachable)
	for range 3 {
		monitor.Once(w.ctx)
		w.clock.Advance(5 * time.Second)
	}
	equal(t, "sent", w.server.Calls("SetArchiveKey"), 2)
	equal(t, "the key", w.server.ArchiveKey(), w.archiveKey(w.machine))
	equal(t, "told", log.told(), "archive.key_not_sent archive.key_sent")
	w.wantFindings()
}

// Another key than that of the metadata stays where it is, as everything in the archive is encrypted with it, and is told.
func TestAnArchiveWithAnotherKey(t *testing.T) {
	w, log := newWorld(t), &spy{}
	w.ports.Journal = log
	monitor := w.process(quick()).Monitor
	other := strings.Repeat("o", command.ArchiveKeyLength)
	w.server.SetArchiveKey(other)
	for range 3 {
		monitor.Once(w.ctx)
		w.clock.Advance(5 * time.Second)
	}
	equal(t, "sent", w.server.Calls("SetArchiveKey"), 0)
	w.wantFindings(doctor.ArchiveKeyDiffers)
	w.server.SetArchiveKey("")
	monitor.Once(w.ctx)
	monitor.Once(w.ctx)
	equal(t, "told", log.told(), "archive.other_key archive.same_key")
	equal(t, "the key", w.server.ArchiveKey(), w.archiveKey(w.machine))
	w.wantFindings()
}
