package controlplane_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// A server that hangs delays no other, whatever the rounds want of both, and is not asked a second time meanwhile. Nor is it
// waited for without end.
func TestAServerThatHangsHoldsUpNoOther(t *testing.T) {
	for _, method := range []string{"SetAccounts", "SetAllowlist", "DeleteBackup"} {
		for hanging := range 2 { // whichever comes first
			t.Run(fmt.Sprintf("%s, server %d", method, hanging+1), func(t *testing.T) { checkApart(t, method, hanging) })
		}
	}
}

func checkApart(t *testing.T, method string, hanging int) {
	w := newWorld(t)
	shop := w.leavesWork("shop", w.server)
	second, agent := w.another("two", 0)
	servers := []*fakeagent.Server{w.server, agent}
	blog := w.leavesWork("blog", servers[1]) // on the emptier one
	equal(t, "server of blog", blog.ServerID, second.ID)
	hung, other, theirs := servers[hanging], servers[1-hanging], []database.Record{shop, blog}[1-hanging]
	before := hung.Calls(method)
	hung.OnCall(func(ctx context.Context, c fakeagent.Call) fakeagent.Fault {
		if c.Method == method {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("the call has no deadline")
			}
			<-ctx.Done()
		}
		return fakeagent.Fault{}
	})
	ctx, stop := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() { defer close(done); w.Rounds.Run(ctx) }()
	deadline := time.Now().Add(20 * time.Second)
	for !w.nothingLeft(theirs, other) || hung.Calls(method) == before {
		if time.Now().After(deadline) {
			t.Error("the other server waits")
			break
		}
		w.clock.Advance(time.Second)
		time.Sleep(time.Millisecond)
	}
	stop()
	<-done
	equal(t, "calls to the one that hangs", hung.Calls(method)-before, 1)
}

// leavesWork is a database of whose server a round still wants something: it was unreachable when an address was allowed and
// a backup deleted.
func (w *world) leavesWork(name string, on *fakeagent.Server) database.Record {
	w.t.Helper()
	r := w.reached(w.made(name).Record.ID)
	must(w.Backups.Start(w.ctx, r))(w.t)
	w.work(w.ControlPlane)
	b := w.backups(r)[0]
	on.SetUnreachable(true)
	defer on.SetUnreachable(false)
	if _, err := w.Allowlist.Add(w.ctx, r, "192.0.2.0/24", ""); err == nil {
		w.t.Fatal("the server was reached")
	}
	if err := w.Backups.Delete(w.ctx, r, b.Filename); err == nil {
		w.t.Fatal("the server was reached")
	}
	return r.Record()
}

// nothingLeft reports whether a server has got all that a round wanted of it.
func (w *world) nothingLeft(db database.Record, on *fakeagent.Server) bool {
	w.t.Helper()
	erased := count(w.activity(db.ID), audit.BackupDeleted) == 1
	return erased && len(on.Networks(db.Name)) == 1 && on.AccountOf(db.ID) != ""
}
