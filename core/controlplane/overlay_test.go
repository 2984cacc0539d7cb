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
	w.refusing("EnsureOverlay", command.ReasonUnavailable) // something is left
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
	equal(t, "commands", w.server.Calls("EnsureOverlay"), 3) // the last sees whether the server has lost it
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
		{&command.Refusal{Reason: command.ReasonTooOld}, fault.AgentError, "upgraded"},
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
	refused(t, errOf(w.LegacyRoles.OptIn(w.ctx, reached)), fault.AgentError) // it has no such database
	refused(t, errOf(w.LegacyRoles.OptIn(w.ctx, reached)), fault.DatabaseNotFound)
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
