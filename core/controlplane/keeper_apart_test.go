package controlplane_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// A server that hangs holds up no other, whatever the keeper wants of it, and is not asked a second time meanwhile.
func TestAServerThatHangsHoldsUpNoOther(t *testing.T) {
	for _, method := range []string{"SetAccounts", "SetAllowlist", "DeleteBackup"} {
		t.Run(method, func(t *testing.T) {
			w := newWorld(t)
			w.leavesWork()
			second := must(w.Operator.AddServer(w.ctx, controlplane.NewServer{
				Name: "two", AgentURL: "https://second:8090", Secret: "shared",
				PublicHost: "two.example.org", PublicPort: 6432, Capacity: 2000,
			}))(t)
			blog := w.made("blog").Record // on the emptier one
			equal(t, "server of blog", blog.ServerID, second.ID)
			before := w.server.Calls(method)
			w.server.OnCall(func(ctx context.Context, c fakeagent.Call) fakeagent.Fault {
				if c.Method == method {
					<-ctx.Done()
				}
				return fakeagent.Fault{}
			})
			ctx, stop := context.WithCancel(w.ctx)
			done := make(chan struct{})
			go func() { defer close(done); w.Keeper.Run(ctx) }()
			deadline := time.Now().Add(20 * time.Second)
			for w.fleet.Server(second.ID).AccountOf(blog.ID) == "" || w.server.Calls(method) == before {
				if time.Now().After(deadline) {
					t.Fatal("the other server is never told")
				}
				w.clock.Advance(time.Second)
				time.Sleep(time.Millisecond)
			}
			stop()
			<-done
			equal(t, "calls to the one that hangs", w.server.Calls(method)-before, 1)
		})
	}
}

// leavesWork is a database of whose server the keeper still wants something: it was unreachable when an address was allowed and
// a backup deleted.
func (w *world) leavesWork() {
	w.t.Helper()
	r, _ := w.started()
	w.work(w.ControlPlane)
	b := w.backups(r)[0]
	w.server.SetUnreachable(true)
	defer w.server.SetUnreachable(false)
	if _, err := w.Allowlist.Add(w.ctx, r, netip.MustParsePrefix("192.0.2.0/24"), ""); err == nil {
		w.t.Fatal("the server was reached")
	}
	if err := w.Backups.Delete(w.ctx, r, b.Filename); err == nil {
		w.t.Fatal("the server was reached")
	}
}
