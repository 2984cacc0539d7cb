package linear

import (
	"context"
	"errors"
	"testing"

	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// A removal that begins while a reconciliation looks at the server overtakes it: the answer is what is so then, and no refusal.
func TestAReconciliationIsOvertaken(t *testing.T) {
	w := newWorld(t, 1, setting{legacy: true, calm: true})
	p := w.planes[0]
	reached := w.reach(p)
	must(p.LegacyRoles.OptIn(w.ctx, reached))(t)
	made := must(p.roles.Create(w.ctx, reached, role.Request{
		DisplayName: "Reports", AccessProfile: role.ReadOnly, ConnectionLimit: 2, Key: "one",
	}))(t)
	w.server.LoseReplies(1)
	if _, err := p.roles.Prepare(w.ctx, reached, made.ID); !fault.Has(err, fault.AgentError) {
		t.Fatalf("a preparation whose answer was lost: %v", err)
	}
	var begun roles.Removal
	var refused error
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) fakeagent.Fault {
		switch c.Method {
		case "ReadOutcome":
			return fakeagent.Fault{Then: func() { begun, refused = p.roles.Delete(w.ctx, reached, made.ID) }}
		case "RemoveRole":
			return fakeagent.Fault{Before: ports.ErrAgentUnreachable}
		}
		return fakeagent.Fault{}
	})
	found, err := p.LegacyRoles.Reconcile(w.ctx, reached, made.ID)
	if errors.Join(err, refused) != nil || begun.Done || found.Status != role.Reserved || found.ChangeID == "" {
		t.Errorf("the role is %+v, %v; its removal %+v, %v", found, err, begun, refused)
	}
}
