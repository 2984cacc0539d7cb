package controlplane_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// another registers one more server, by far the roomiest.
func (w *world) another(name string, connections int) (server.Server, *fakeagent.Server) {
	w.t.Helper()
	s := must(w.Operator.AddServer(w.ctx, operator.NewServer{
		Name: name, AgentURL: "https://" + name + ":8090", Secret: agentSecret, PublicHost: name + ".example.org", PublicPort: 6432,
		Capacity: 100_000, Connections: &connections,
	}))(w.t)
	return s, w.fleet.Server(s.ID)
}

// avoided is whether other servers come first now.
func (w *world) avoided(of id.ServerID) (avoided bool) {
	w.t.Helper()
	ok(w.t, w.store.View(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		s, err := tx.Servers().Get(ctx, of)
		avoided = s.Avoided(w.clock.Now())
		return err
	}))
	return avoided
}

// A server that cannot be reached gets one creation, which is made elsewhere, and then none for a while.
func TestADeadServerIsPassedOver(t *testing.T) {
	w := newWorld(t)
	roomy, dead := w.another("roomy", 0)
	dead.SetUnreachable(true)
	for i := range 3 {
		c := w.made(fmt.Sprintf("shop-%d", i))
		equal(t, "server", c.Record.ServerID, w.machine.ID)
		equal(t, "host", c.Record.Host, w.machine.PublicHost)
		equal(t, "logs in", w.logsIn(c), true)
	}
	equal(t, "creations that the dead server was asked for", dead.Calls("EnsureDatabase"), 1)
	w.clock.Advance(server.AvoidedFor)
	dead.SetUnreachable(false)
	equal(t, "server, once it answers", w.made("later").Record.ServerID, roomy.ID)
}

// A server that answers is not avoided any longer. The roomier one is full, so the avoided one is asked.
func TestAnAnswerEndsAvoidance(t *testing.T) {
	w := newWorld(t)
	w.server.SetUnreachable(true)
	refused(t, errOf(w.Databases.Create(w.ctx, w.caller, request("shop"))), fault.AgentError)
	equal(t, "avoided", w.avoided(w.machine.ID), true)
	equal(t, "databases left", w.databases(), 0)
	w.server.SetUnreachable(false)
	w.made("shop")
	equal(t, "avoided", w.avoided(w.machine.ID), false)
}

// A server whose PostgreSQL is down may have the command: the database stays, and others go elsewhere.
func TestAnUnavailableServerKeepsWhatItWasTold(t *testing.T) {
	w := newWorld(t)
	roomy, down := w.another("roomy", 0)
	down.SetUnavailable(true)
	refused(t, errOf(w.Databases.Create(w.ctx, w.caller, request("shop"))), fault.AgentError)
	equal(t, "server of the next", w.made("next").Record.ServerID, w.machine.ID)
	down.SetUnavailable(false)
	w.work(w.ControlPlane)
	equal(t, "databases", w.databases(), 2)
	equal(t, "of them on the first server", len(w.fleet.Server(roomy.ID).Databases()), 1)
}

// A command whose answer was lost may have been carried out, and one that a later lease sends may have been sent before.
func TestOnlyTheUntouchedIsMoved(t *testing.T) {
	w := newWorld(t)
	_, lossy := w.another("roomy", 0)
	lossy.LoseReplies(1)
	refused(t, errOf(w.Databases.Create(w.ctx, w.caller, request("lost"))), fault.AgentError)
	_, cut := w.another("roomier", 0)
	must(w.Operator.ChangeServer(w.ctx, w.machine.ID, func(s *server.Server) { s.Capacity = 200_000 }))(t)
	if !dies(func() {
		_, _ = w.process(mortal(work.Reserved(databases.KindCreate))).Databases.Create(w.ctx, w.caller, request("cut"))
	}) {
		t.Fatal("the process did not die")
	}
	lossy.SetUnreachable(true)
	w.server.SetUnreachable(true)
	w.clock.Advance(time.Minute)
	for range 5 {
		must(w.Work.RunNext(w.ctx))(t)
	}
	equal(t, "made elsewhere", len(cut.Databases()), 0)
	lossy.SetUnreachable(false)
	w.server.SetUnreachable(false)
	w.work(w.ControlPlane)
	equal(t, "made where they were placed", len(lossy.Databases())+len(w.server.Databases()), 2)
}

// The other server has a database of the name, or no room: there is nowhere to go.
func TestNowhereElse(t *testing.T) {
	for what, prepare := range map[string]func(*world){
		"the name is taken": func(w *world) { w.made("shop") },
		"there is no room": func(w *world) {
			must(w.Operator.ChangeServer(w.ctx, w.machine.ID, func(s *server.Server) { s.Connections = 64 }))(w.t)
		},
		"it is disabled": func(w *world) {
			must(w.Operator.ChangeServer(w.ctx, w.machine.ID, func(s *server.Server) { s.Enabled = false }))(w.t)
		},
		"it is dead, too": func(w *world) { w.server.SetUnreachable(true) },
	} {
		w := newWorld(t)
		prepare(w)
		before := w.databases()
		_, dead := w.another("roomy", 0)
		dead.SetUnreachable(true)
		_, err := w.Databases.Create(w.ctx, w.caller, request("shop"))
		if !fault.Has(err, fault.AgentError) {
			t.Errorf("%s: %v", what, err)
		}
		equal(t, what+": databases", w.databases(), before)
	}
}

// Two servers that do not answer send each other nothing back and forth.
func TestManyDeadServers(t *testing.T) {
	w := newWorld(t)
	var dead []*fakeagent.Server
	for i := range 3 {
		_, s := w.another(fmt.Sprint("dead-", i), 0)
		s.SetUnreachable(true)
		dead = append(dead, s)
	}
	equal(t, "server", w.made("shop").Record.ServerID, w.machine.ID)
	for _, s := range dead {
		equal(t, "attempts", s.Calls("EnsureDatabase"), 1)
	}
}

// Of a server that is not asked how many connections it has none are counted, unless the operator gives a number.
func TestConnectionsOfANewServer(t *testing.T) {
	w := newWorld(t)
	equal(t, "asked of the agent", w.machine.Connections > 0, true)
	n := operator.NewServer{
		Name: "two", AgentURL: "https://two:8090", Secret: agentSecret, PublicHost: "two.example.org", PublicPort: 6432, Capacity: 1,
	}
	n.Unchecked = true
	equal(t, "counted", must(w.Operator.AddServer(w.ctx, n))(t).Connections, 0)
	some := 500
	n.Name, n.Connections = "three", &some
	equal(t, "given", must(w.Operator.AddServer(w.ctx, n))(t).Connections, 500)
}

// A database goes to a server of the version that its creation asks for, or of its account's. Where there is none, the refusal
// names those that there are.
func TestServersAreOfTheVersion(t *testing.T) {
	w := newWorld(t)
	newer, _ := w.another("newer", 0)
	must(w.Operator.ChangeServer(w.ctx, newer.ID, func(s *server.Server) { s.PostgresVersion = 17 }))(t)
	ask := func(name string, version int) (databases.Created, error) {
		r := request(name)
		if version != 0 {
			r.PostgresVersion = &version
		}
		return w.Databases.Create(w.ctx, w.caller, r)
	}
	made := map[string]databases.Created{}
	for name, version := range map[string]int{"usual": 0, "asked": 17} {
		made[name] = must(ask(name, version))(t)
	}
	equal(t, "server by default", made["usual"].Record.ServerID, w.machine.ID)
	equal(t, "version by default", made["usual"].Record.PostgresVersion, 16)
	equal(t, "server that was asked for", made["asked"].Record.ServerID, newer.ID)
	equal(t, "version that was asked for", made["asked"].Record.PostgresVersion, 17)
	refusedOn(t, "a version that no server has", errOf(ask("newest", 18)), "postgresVersion", "PostgreSQL 18", "of 16 and 17")
	must(w.Operator.ChangeServer(w.ctx, w.machine.ID, func(s *server.Server) { s.Enabled = false }))(t)
	refusedOn(t, "the version of a disabled server", errOf(ask("disabled", 0)), "postgresVersion", "PostgreSQL 16", "servers of 17")
	must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.PostgresVersion = new(17) }))(t)
	w.caller.Account = must(w.Operator.AccountDetails(w.ctx, w.account.ID, ports.Page{}))(t).Account
	equal(t, "server of the account's version", must(ask("accounts", 0))(t).Record.ServerID, newer.ID)
}

// A creation moves on to a server of its version only.
func TestAMovedCreationKeepsItsVersion(t *testing.T) {
	w := newWorld(t)
	newer, _ := w.another("newer", 0)
	must(w.Operator.ChangeServer(w.ctx, newer.ID, func(s *server.Server) { s.PostgresVersion = 17 }))(t)
	w.server.SetUnreachable(true)
	refused(t, errOf(w.Databases.Create(w.ctx, w.caller, request("shop"))), fault.AgentError)
	equal(t, "databases left", w.databases(), 0)
}

// A server is full when the caps of its databases, and 5 for each, are what may be sold.
func TestConnectionsAreSoldOnce(t *testing.T) {
	w := newWorld(t)
	must(w.Operator.ChangeServer(w.ctx, w.machine.ID, func(s *server.Server) { s.Connections = 2*65 + 1 }))(t)
	var made sync.Map
	var running sync.WaitGroup
	for i := range 5 {
		running.Go(func() {
			c, err := w.Databases.Create(w.ctx, w.caller, request(fmt.Sprint("shop-", i)))
			switch {
			case err == nil:
				made.Store(i, c)
			case !fault.Has(err, fault.AgentError):
				t.Error(err)
			}
		})
	}
	running.Wait()
	equal(t, "databases", w.databases(), 2)
	made.Range(func(_, c any) bool {
		equal(t, "logs in", w.logsIn(c.(databases.Created)), true)
		return true
	})
	must(w.Operator.ChangeServer(w.ctx, w.machine.ID, func(s *server.Server) { s.Connections = 3 * 65 }))(t)
	one := request("single")
	one.RoleModel = new(database.SingleLogin)
	must(w.Databases.Create(w.ctx, w.caller, one))(t)
	refused(t, errOf(w.Databases.Create(w.ctx, w.caller, request("more"))), fault.AgentError)
}
