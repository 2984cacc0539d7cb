package crash_test

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/role"
)

// removeFlow removes a role, of whatever status, while a customer is connected with it.
type removeFlow struct {
	from string // ready, revoked, expired or sql_ready
	bait *bait  // depends on the role, which stays; nil for a role that goes
	*shared
	role    wire.RevealedRole
	clients clients
}

// bait is something that depends on a role, and how the owner of the database makes it and takes it back.
type bait struct{ make, clear string }

var baits = []*bait{
	{"GRANT SELECT (n) ON item TO ", "REVOKE SELECT (n) ON item FROM "},
	{"CREATE POLICY bait ON item TO ", "DROP POLICY bait ON item --"},
	{"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO ", "ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM "},
}

func (f *removeFlow) ready(t *testing.T, w *world) {
	f.open(t, w)
	if f.from == "sql_ready" {
		half := stepFlow{step: "admit", makeRoleFlow: makeRoleFlow{shared: f.shared}}
		half.ready(t, w)
		delete(w.unfinished, half.role.RoleID)
		f.role.Role = half.role.Role
		return
	}
	f.role = f.makeRole(t, w)
	f.clients = w.openClients(t, loginOf(f.role))
	if f.bait != nil {
		f.asOwner(t, w, f.bait.make+f.role.Username)
	}
	switch f.from {
	case "revoked":
		f.revoke(t, w, f.role.RoleID)
	case "expired":
		f.expire(t, w, f.role)
	}
}

// send asks for the removal: a revoked role has a request of its own.
func (f *removeFlow) send(t *testing.T, api *stack.Host) (wire.RoleRemoval, error) {
	t.Helper()
	if f.from == "revoked" {
		return f.roles(api).Remove(soon(t), f.db.ID, f.role.RoleID)
	}
	return f.tryDelete(t, api, f.role.RoleID)
}

func (f *removeFlow) act(t *testing.T, _ *world, api *stack.Host) {
	if _, err := f.send(t, api); f.bait == nil {
		mayHaveFailed(t, err)
	}
}

func (f *removeFlow) leave(t *testing.T, w *world) {
	w.away(t, func() {
		begun, err := f.send(t, w.api)
		isPending(t, role.ChangeStatus(begun.Status), err)
	})
	w.hurry(t)
}

func (f *removeFlow) repeat(t *testing.T, w *world) {
	f.reconcile(t, w, f.role.RoleID)
	f.again(t, w)
}

// again repeats the request until it has its last answer, and looks whether that is right.
func (f *removeFlow) again(t *testing.T, w *world) {
	t.Helper()
	got, err := insistsOnRemoval(t, func() (wire.RoleRemoval, error) { return f.send(t, w.api) })
	if f.bait != nil {
		refused(t, "the removal of a role on which something depends", err, fault.RoleDependencies)
		return
	}
	if err != nil || got.Status != "removed" || got.RoleID != f.role.RoleID {
		t.Errorf("the removal: %+v, %v", got, err)
	}
}

func (f *removeFlow) check(t *testing.T, w *world, api *stack.Host) {
	f.again(t, w)
	if f.from != "sql_ready" {
		f.clients.shut(t, w, loginOf(f.role))
	}
	if f.bait != nil {
		if r, found := f.find(t, api, f.role.DisplayName); !found || r.Status != "revoked" {
			t.Errorf("the role that stays is %+v", r)
		}
		f.asOwner(t, w, f.bait.clear+f.role.Username)
		f.bait = nil
		f.again(t, w)
	}
	if r, found := f.find(t, api, f.role.DisplayName); found {
		t.Errorf("a removed role is listed as %s", r.Status)
	}
	_, err := f.tryReveal(t, api, f.role.RoleID)
	refused(t, "the password of a removed role", err, fault.RoleNotFound)
	f.again(t, w)
}

func removingRoles(h *shared) []killing {
	var cases []killing
	add := func(in part, from string, kept bool, points ...string) {
		for i, p := range points {
			f, what := &removeFlow{from: from, shared: h}, h.model.name("from "+from+" in "+string(in))
			if kept {
				f.bait = baits[i%len(baits)]
				what += ", kept"
			}
			cases = append(cases, kill(in, what, f, p))
		}
	}
	revoking, removing := around("revoke", attempted...), around("remove", attempted...)
	keeping := around("remove", "change", "failed")
	begun := work.Reserved("remove")
	add(inAPI, "ready", false, append(slices.Concat(revoking, removing), work.Reserved("revoke"), begun)...)
	add(inAPI, "expired", false, slices.Concat(revoking, removing)...)
	add(inAPI, "revoked", false, append(removing, begun)...)
	add(inAPI, "sql_ready", false, append(removing, begun)...)
	add(inAPI, "ready", true, keeping...)
	add(inBatch, "ready", false, revoking...)
	add(inBatch, "revoked", false, removing...)
	add(inBatch, "revoked", true, keeping...)
	removePoints := []string{crash.RemoveAdmitted, crash.RemoveShut, crash.RemoveDropped, crash.RemoveReply}
	add(inAgent, "ready", false, slices.Concat(changePoints, removePoints)...) // it is revoked first
	add(inAgent, "expired", false, removePoints...)
	add(inAgent, "revoked", false, removePoints...)
	add(inAgent, "sql_ready", false, removePoints...)
	add(inAgent, "ready", true, removePoints...)
	return cases
}
