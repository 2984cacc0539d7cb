package controlplane_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

func (w *roleWorld) optIn() (database.Overlay, error) { return w.LegacyRoles.OptIn(w.ctx, w.here()) }

// overlay is as it is stored.
func (w *roleWorld) overlay() database.Overlay { return w.here().Record().Overlay }

// An opt-in that is repeated reuses the overlay, whether it was finished or not.
func TestOptIn(t *testing.T) {
	w := newLegacyWorld(t)
	told := &spy{}
	w.ports.Journal = told
	w.ControlPlane = w.process(quick())
	refused(t, errOf(w.Roles.Create(w.ctx, w.here(), wanted("early"))), fault.LegacyRoleConflict)
	w.refusing("EnsureOverlay", command.ReasonUnfinished)
	half := must(w.optIn())(t)
	equal(t, "while something is left", half.OverlayStatus, database.OverlayReserved)
	equal(t, "stored", w.overlay(), half)
	refused(t, errOf(w.Roles.Create(w.ctx, w.here(), wanted("early"))), fault.LegacyRoleConflict)
	w.server.OnCall(nil)
	for range 2 {
		stands := must(w.optIn())(t)
		equal(t, "in the end", stands.OverlayStatus, database.OverlayActive)
		equal(t, "the same overlay", stands.OverlayID, half.OverlayID)
		equal(t, "generation", stands.OverlayGeneration, half.OverlayGeneration)
	}
	equal(t, "commands", w.server.Calls("EnsureOverlay"), 2) // the server still has it, and is not told again
	equal(t, "in the log", len(w.details(audit.OverlayActive)), 1)
	if got := told.said(w.db); !slices.Equal(got, []string{"overlay.unconfirmed", "overlay.active"}) {
		t.Errorf("the operator is told %v", got)
	}
	w.server.SetUnreachable(true)
	equal(t, "of a server that is not reached", must(w.optIn())(t).OverlayStatus, database.OverlayActive)
}

// What the agent says instead, the overlay stays reserved, nothing else waits for it, and the request that is repeated ends it.
func TestOptInWithoutAnAnswer(t *testing.T) {
	for _, c := range []struct {
		err  error
		want fault.Code
		says string
	}{
		{fakeagent.ErrReplyLost, fault.AgentError, "repeat"},
		{&command.Refusal{Reason: command.ReasonUnavailable}, fault.AgentError, "repeat"},
		{&command.Refusal{Reason: command.ReasonOtherProtocol}, fault.AgentError, "updated"},
		{&command.Refusal{Reason: command.ReasonNotFound}, fault.AgentError, "operator"},
		{&command.Refusal{Reason: command.ReasonNameTaken}, fault.AgentError, "operator"},
		{&command.Refusal{Reason: command.ReasonInvalid}, fault.AgentError, "operator"},
		{&command.Refusal{Reason: command.ReasonFailed}, fault.AgentError, "operator"},
		{&command.Refusal{Reason: command.ReasonDatabaseClosed}, fault.LegacyRoleConflict, "not active"},
	} {
		w := newLegacyWorld(t)
		w.failing("EnsureOverlay", 0, c.err)
		_, err := w.optIn()
		refused(t, err, c.want)
		var told *fault.Error
		if errors.As(err, &told); !strings.Contains(told.Message, c.says) {
			t.Errorf("%v: %s", c.err, told.Message)
		}
		equal(t, "overlay", w.overlay().OverlayStatus, database.OverlayReserved)
		must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Restart))(t)
		equal(t, "again", must(w.optIn())(t).OverlayStatus, database.OverlayActive)
	}
}

// Requests at the same moment make one overlay, and one entry in the log.
func TestOptInsAtOnce(t *testing.T) {
	w := newLegacyWorld(t)
	here := w.here()
	var running sync.WaitGroup
	for range 20 {
		running.Go(func() {
			if _, err := w.LegacyRoles.OptIn(w.ctx, here); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	equal(t, "overlay", w.overlay().OverlayStatus, database.OverlayActive)
	equal(t, "generation", w.overlay().OverlayGeneration, 1)
	equal(t, "in the log", len(w.details(audit.OverlayActive)), 1)
}

// What happens while the agent makes the group roles has its way: the overlay stands all the same, or its database is gone.
func TestWhatComesBetweenDuringOptIn(t *testing.T) {
	w := newLegacyWorld(t)
	w.during("EnsureOverlay", func() { must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Stop))(t) })
	equal(t, "beside a stop", must(w.optIn())(t).OverlayStatus, database.OverlayActive)
	equal(t, "status", w.status(w.db), database.Stopped)
	refused(t, errOf(w.Roles.Create(w.ctx, w.here(), wanted("report"))), fault.LegacyRoleConflict)
	must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Start))(t)
	w.role("report")

	w = newLegacyWorld(t)
	w.during("EnsureOverlay", func() { ok(t, w.Operator.DeactivateLegacyRoles(w.ctx, w.db)) })
	equal(t, "beside a deactivation", must(w.optIn())(t).OverlayStatus, database.OverlayActive)

	w = newLegacyWorld(t)
	reached := w.here()
	w.during("EnsureOverlay", func() {
		ok(t, w.Operator.SetFeature(w.ctx, "delete", true))
		ok(t, w.Operator.Enroll(w.ctx, w.db, rollout.All))
		w.deleted(w.db)
	})
	for range 2 {
		refused(t, errOf(w.LegacyRoles.OptIn(w.ctx, reached)), fault.DatabaseNotFound)
	}
}

// A database that is being deleted takes no opt-in, whatever its overlay is and whatever its server says.
func TestOptInBesideADeletion(t *testing.T) {
	for _, refusal := range []command.Reason{command.ReasonNotFound, command.ReasonUnfinished, command.ReasonUnavailable} {
		for _, active := range []bool{false, true} {
			w := newLegacyWorld(t)
			ok(t, w.Operator.SetFeature(w.ctx, "delete", true))
			ok(t, w.Operator.Enroll(w.ctx, w.db, rollout.All))
			reached, method := w.here(), "EnsureOverlay"
			if active {
				must(w.optIn())(t)
				method = "AskRights"
			}
			w.inCall(method, 0, func() fakeagent.Fault {
				must(w.deletes(w.ControlPlane, w.db))(t)
				return fakeagent.Fault{Before: command.Refuse(refusal, "it is on its way")}
			})
			for range 2 {
				refused(t, errOf(w.LegacyRoles.OptIn(w.ctx, reached)), fault.LegacyRoleConflict)
			}
		}
	}
}

// Where the server has lost an overlay, another one is made in its place, in the open. What it cannot be asked stays as it is.
func TestOptInAfterALoss(t *testing.T) {
	w := newOverlayWorld(t)
	r, first := w.role("report"), w.overlay()
	w.server.LoseOverlay(w.db)
	refused(t, errOf(w.reconcile(r.ID)), fault.LegacyRoleConflict) // it has lost its group
	for _, broken := range []command.Reason{command.ReasonUnavailable, command.ReasonNoRoute, command.ReasonFailed} {
		w.refusing("AskRights", broken)
		equal(t, "not to be seen", must(w.optIn())(t), first)
	}
	w.refusing("EnsureOverlay", command.ReasonUnfinished)
	second := must(w.optIn())(t)
	equal(t, "overlay", second.OverlayStatus, database.OverlayReserved)
	equal(t, "the same overlay", second.OverlayID == first.OverlayID, false)
	equal(t, "generation", second.OverlayGeneration > first.OverlayGeneration, true)
	refused(t, errOf(w.Roles.Create(w.ctx, w.here(), wanted("second"))), fault.LegacyRoleConflict)
	equal(t, "still there", w.getsIn(r.Username, w.password(r.ID)), true)
	equal(t, "may be shut out", must(w.change(r.ID, role.Revocation, "out"))(t).Status, role.Completed)
	w.server.OnCall(nil)
	second.OverlayStatus = database.OverlayActive
	for range 2 {
		equal(t, "in the end", must(w.optIn())(t), second)
	}
	equal(t, "a role", w.role("second").Status, role.Ready)
	equal(t, "lost in the log", w.details(audit.OverlayLost)[0]["overlayId"], string(first.OverlayID))
	equal(t, "in the log", len(w.details(audit.OverlayActive)), 2)
}

// An answer about an overlay that has been replaced meanwhile says nothing of the one that is made in its place.
func TestOptInIsOvertakenByALoss(t *testing.T) {
	w := newLegacyWorld(t)
	calls := 0
	w.inEveryCall("EnsureOverlay", func() (f fakeagent.Fault) {
		if calls++; calls == 1 {
			f.Then = func() {
				must(w.optIn())(t)
				w.server.LoseOverlay(w.db)
				w.failing("EnsureOverlay", 0, fakeagent.ErrReplyLost)
				refused(t, errOf(w.optIn()), fault.AgentError)
			}
		}
		return f
	})
	equal(t, "the late answer", must(w.optIn())(t).OverlayStatus, database.OverlayReserved)
	equal(t, "in the end", must(w.optIn())(t).OverlayStatus, database.OverlayActive)
}

func TestOptInNeedsACalmDatabase(t *testing.T) {
	w := newLegacyWorld(t)
	must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Stop))(t)
	refused(t, errOf(w.optIn()), fault.LegacyRoleConflict)
	must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Start))(t)
	w.losing("SetAccess", 0)
	refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.here(), database.Restart)), fault.AgentError)
	refused(t, errOf(w.optIn()), fault.LegacyRoleConflict)
	w.work(w.ControlPlane)
	refused(t, errOf(w.LegacyRoles.OptIn(w.ctx, w.asMember(account.Developer))), fault.Forbidden)
	equal(t, "overlay", w.overlay(), database.Overlay{OverlayStatus: database.NoOverlay})
	equal(t, "commands", w.server.Calls("EnsureOverlay"), 0)
	must(w.optIn())(t)
}

// The roles of a database without a cap take connections beside those of its owner. Where these are sold already, the opt-in
// changes nothing.
func TestOptInWhereConnectionsAreTaken(t *testing.T) {
	w := newLegacyWorld(t)
	owners := w.here().Record().ReservedConnections()
	connections := func(n int) {
		must(w.Operator.ChangeServer(w.ctx, w.machine.ID, func(s *server.Server) { s.Connections = n }))(t)
	}
	connections(owners + database.OverlayConnections - 1)
	refused(t, errOf(w.optIn()), fault.AgentError)
	equal(t, "overlay", w.overlay(), database.Overlay{OverlayStatus: database.NoOverlay})
	equal(t, "commands", w.server.Calls("EnsureOverlay"), 0)
	connections(owners + database.OverlayConnections)
	must(w.optIn())(t)
	connections(owners) // it is oversold now, and what has opted in stays so
	must(w.optIn())(t)
}

// An agent that hangs keeps a request no longer than other work about roles.
func TestSlowOptIn(t *testing.T) {
	w := newLegacyWorld(t)
	c := quick()
	c.RoleWait = 20 * time.Millisecond
	w.server.SetDelay(time.Minute)
	refused(t, errOf(w.process(c).LegacyRoles.OptIn(w.ctx, w.here())), fault.AgentError)
	w.server.SetDelay(0)
	must(w.optIn())(t)
	equal(t, "a role", w.role("report").Status, role.Ready)
}
