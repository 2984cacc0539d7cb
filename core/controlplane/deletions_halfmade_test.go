package controlplane_test

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// halves are the ways in which a role can be left half made: its server has not heard of it, has made it, or has let it log in.
var halves = map[string]func(w *roleWorld){
	"never told": func(w *roleWorld) {
		w.failing("PrepareRole", 0, ports.ErrAgentUnreachable)
		refused(w.t, errOf(w.Roles.Create(w.ctx, w.here(), wanted("report"))), fault.AgentError)
	},
	"prepared in secret": func(w *roleWorld) { w.halfMade("PrepareRole") },
	"admitted in secret": func(w *roleWorld) { w.halfMade("AdmitRole") },
}

// A role whose set-up was interrupted keeps nobody from deleting its database. It waits with it, and its set-up goes on after a
// recovery; of a purged database nothing of it is left, whatever arrives late.
func TestARoleThatIsHalfMadeWhenItsDatabaseIsDeleted(t *testing.T) {
	for name, half := range halves {
		t.Run(name, func(t *testing.T) {
			w := newHalfMade(t, half)
			before := w.first()
			late := w.setup(before.ID)
			w.deleted(w.db)
			w.wantFindings()
			w.comesLate(late)
			w.wantFindings()
			w.recovered(w.db)
			w.wantFindings()
			w.is(before.ID, before.Status)
			made := w.role("report")
			equal(t, "the same role", made.ID, before.ID)
			equal(t, "gets in", w.getsIn(made.Username, w.password(made.ID)), true)
			w.wantFindings()
		})
		t.Run(name+", and purged", func(t *testing.T) {
			w := newHalfMade(t, half)
			before := w.first()
			late := w.setup(before.ID)
			w.deleted(w.db)
			w.purged(w.ControlPlane)
			w.comesLate(late)
			equal(t, "tombstones", len(w.tombstones()), 0)
			equal(t, "databases of the server", len(w.server.Databases()), 0)
			w.wantFindings()
		})
		t.Run(name+", and removed after the recovery", func(t *testing.T) {
			w := newHalfMade(t, half)
			before := w.first()
			w.deleted(w.db)
			w.recovered(w.db)
			_, err := w.Roles.Delete(w.ctx, w.here(), before.ID)
			ok(t, err)
			w.keep()
			w.wantFindings()
			w.role("another")
			w.wantFindings()
		})
	}
}

func newHalfMade(t *testing.T, half func(w *roleWorld)) *roleWorld {
	t.Helper()
	w := newRoleWorld(t)
	for _, feature := range []string{"delete", "deleted-recovery"} {
		ok(t, w.Operator.SetFeature(w.ctx, feature, true))
	}
	ok(t, w.Operator.Enroll(w.ctx, w.db, rollout.All))
	half(w)
	w.server.OnCall(nil)
	return w
}

// onTheirWay are the commands of a role's set-up.
type onTheirWay struct {
	fence              ports.Fence
	username, password string
	commands           []command.Returning[command.None]
}

func (w *roleWorld) setup(of id.RoleID) onTheirWay {
	w.t.Helper()
	r := must(ports.Read(w.ctx, w.store, func(ctx context.Context, tx ports.Tx) (role.Role, error) {
		return tx.Roles().Get(ctx, w.db, of)
	}))(w.t)
	password := string(must(w.ports.Secrets.Open(r.Sealed, r.SecretContext()))(w.t))
	return onTheirWay{ports.Fence{OperationID: r.SetupID}, r.Username, password, []command.Returning[command.None]{
		command.PrepareRole{
			DatabaseID: w.db, Username: r.Username, Generation: r.Generation, AccessProfile: r.AccessProfile,
			ConnectionLimit: r.ConnectionLimit,
		},
		command.AdmitRole{
			DatabaseID: w.db, Username: r.Username, Generation: r.Generation, AccessProfile: r.AccessProfile,
			ConnectionLimit: r.ConnectionLimit, Verifier: r.Verifier, Password: password,
		},
	}}
}

// comesLate delivers them. They are refused, or get the answer that they had.
func (w *roleWorld) comesLate(late onTheirWay) {
	w.t.Helper()
	agent := must(w.fleet.Agent(w.machine))(w.t)
	for _, c := range late.commands {
		err := ports.Tell(w.ctx, agent, late.fence, c)
		if err != nil && !command.RefusedFor(err, command.ReasonNotFound) && !command.RefusedFor(err, command.ReasonIsolated) {
			w.t.Errorf("%T, when it is too late: %v", c, err)
		}
	}
	for _, name := range w.server.Databases() {
		equal(w.t, "gets into "+name, w.server.LogInDirectly(name, late.username, late.password), false)
	}
}
