package agent

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// A rotation that comes after the end of its own password's validity kills the old password, and proves that without a log-in
// with the new one. The next rotation opens the role again.
func roleRotatedTooLate(t *testing.T, s Stand) {
	g := admitted(t, s)
	own, bystander := g.sessions(t, g.login), g.sessions(t, g.spec.Logins[0])
	rotation, late := g.rotation()
	rotation.ValidUntil = fromNow(-time.Hour)
	fence := changeFence()
	proof := must(ports.Do(bounded(t), g.Agent, fence, rotation))(t)
	if !proof.Lapsed || !proof.NoneLeft || !proof.OldRefused || proof.NewAccepted || proof.ConnectMissing || proof.Absent {
		t.Errorf("got %+v", proof)
	}
	wantAlive(t, own, false)
	wantAlive(t, bystander, true)
	g.wantIn(t, g.login, false)
	g.wantIn(t, late, false)
	g.wantCondition(t, late, command.LoginShut)
	again, err := ports.Do(bounded(t), g.Agent, fence, rotation)
	if err != nil || again != proof {
		t.Errorf("again: %+v (%v), the first time %+v", again, err, proof)
	}

	rotation, fresh := g.rotationOf(late)
	rotation.CredentialGeneration, rotation.ValidUntil = 3, fromNow(time.Hour)
	proof = g.change(t, rotation)
	wantRotated(t, proof)
	if proof.Lapsed {
		t.Error("a validity of an hour is over")
	}
	g.wantIn(t, fresh, true)
	g.login = fresh
	g.change(t, g.shutting(role.Expiry))
	g.wantIn(t, fresh, false)
}

// A role whose rotation came too late is shut like every other, though its password has never let anybody in.
func roleExpiredAfterLapse(t *testing.T, s Stand) {
	g := admitted(t, s)
	rotation, late := g.rotation()
	rotation.ValidUntil = fromNow(-time.Hour)
	g.change(t, rotation)
	g.login = late
	for _, kind := range []role.Kind{role.Expiry, role.Revocation} {
		if proof := g.change(t, g.shutting(kind)); !proof.NoneLeft || !proof.OldRefused || proof.Absent || proof.Lapsed {
			t.Errorf("%s: %+v", kind, proof)
		}
	}
	g.wantIn(t, late, false)
}

func roleAdmittedTooLate(t *testing.T, s Stand) {
	g := stageOf(t, s)
	g.prepare(t)
	g.role.ValidUntil = fromNow(-time.Hour)
	for range 2 {
		g.refuses(t, g.setUp, g.role, command.ReasonFailed)
		g.wantIn(t, g.login, false)
	}
	g.remove(t)
	g.wantListed(t, false)
}

func fromNow(d time.Duration) *time.Time {
	then := time.Now().UTC().Add(d).Truncate(time.Microsecond)
	return &then
}
