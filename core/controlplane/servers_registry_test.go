package controlplane_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

func newServer(name string) operator.NewServer {
	return operator.NewServer{
		Name: name, AgentURL: "https://" + name + ":8090", Secret: agentSecret, PublicHost: name + ".example.org", PublicPort: 6432,
		Capacity: 5,
	}
}

// refusedOn demands a refusal of a field that says all of these.
func refusedOn(t *testing.T, what string, err error, field string, says ...string) {
	t.Helper()
	if !fault.Has(err, fault.ValidationError) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %v", what, err)
		return
	}
	for _, text := range append(says, field) {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %q lacks %q", what, err, text)
		}
	}
}

// A weak secret never reaches an agent or the metadata.
func TestAWeakSecretIsRefused(t *testing.T) {
	w := newWorld(t)
	n := newServer("two")
	n.Secret = "0123456789abcdef"
	_, err := w.Operator.AddServer(w.ctx, n)
	refusedOn(t, "add", err, "agentSecret", "openssl rand")
	_, err = w.Operator.SetServer(w.ctx, w.machine.ID, operator.ServerChange{Secret: "short"})
	refusedOn(t, "set", err, "agentSecret", "openssl rand")
}

// An agent that cannot be worked with is not registered, and a change by which it could not be reached is not stored.
func TestAServerIsLookedAtFirst(t *testing.T) {
	w := newWorld(t)
	w.fleet.Server(w.machine.ID).Shows(server.Survey{Agent: server.Reach{Address: "https://there:1", Trouble: server.WrongSecret}})
	_, err := w.Operator.SetServer(w.ctx, w.machine.ID, operator.ServerChange{Secret: agentSecret + "0"})
	refusedOn(t, "set", err, "agentSecret", "https://there:1", "PGHERD_AGENT_SECRET_FILE")
	_, found, err := w.Operator.CheckServer(w.ctx, w.machine.ID, "v")
	equal(t, "wrong", err == nil && server.AnyWrong(found), true)
	s, n, err := w.Operator.Server(w.ctx, w.machine.ID)
	equal(t, "nothing has changed", err == nil && slices.Equal(s.SealedSecret, w.machine.SealedSecret), true)
	equal(t, "nothing stands on it", n, server.Contents{})
	capacity, off := 7, false
	s = must(w.Operator.SetServer(w.ctx, w.machine.ID, operator.ServerChange{Capacity: &capacity, Enabled: &off}))(t)
	equal(t, "what does not concern the agent", s.Capacity == 7 && !s.Enabled, true)
	s = must(w.Operator.SetServer(w.ctx, w.machine.ID, operator.ServerChange{AgentURL: "https://moved:1", Unchecked: true}))(t)
	equal(t, "unchecked", s.AgentURL, "https://moved:1")
}

// One server is registered once, by whichever address: also where the earlier registration was unchecked.
func TestOneServerIsRegisteredOnce(t *testing.T) {
	w := newWorld(t)
	n := newServer("two")
	n.Unchecked = true
	two := must(w.Operator.AddServer(w.ctx, n))(t)
	same := server.Survey{Protocol: command.Protocol, Postgres: true, PgBouncer: true, Installation: w.machine.Installation}
	w.fleet.Server(two.ID).Shows(same)
	_, found, err := w.Operator.CheckServer(w.ctx, two.ID, "")
	ok(t, err)
	i := slices.IndexFunc(found, func(f server.Finding) bool { return f.Verdict == server.Wrong })
	rows := slices.DeleteFunc(slices.Clone(found), func(f server.Finding) bool { return f.Check != server.CheckInstallation })
	if i < 0 || len(rows) != 1 || !strings.HasPrefix(found[i].Found, two.AgentURL+" leads to the server that is registered as one") {
		t.Errorf("%+v", found)
	}
	_, err = w.Operator.SetServer(w.ctx, two.ID, operator.ServerChange{AgentURL: "https://three:1"})
	refusedOn(t, "set", err, "agentUrl", "registered as one")
	same.Installation = "another"
	w.fleet.Server(two.ID).Shows(same)
	_, err = w.Operator.SetServer(w.ctx, two.ID, operator.ServerChange{AgentURL: "https://three:1"})
	ok(t, err)
	same.Installation = "a third"
	w.fleet.Server(two.ID).Shows(same)
	_, err = w.Operator.SetServer(w.ctx, two.ID, operator.ServerChange{AgentURL: "https://four:1"})
	refusedOn(t, "another server than before", err, "agentUrl", "another server answers")
}

// A server goes only when nothing stands on it, and the log of the installation says so.
func TestAServerIsRemoved(t *testing.T) {
	w := newWorld(t)
	two := must(w.Operator.AddServer(w.ctx, newServer("two")))(t)
	shop := w.made("shop")
	ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Servers().Move(ctx, shop.Record.ID, two.ID)
	}))
	_, err := w.Operator.RemoveServer(w.ctx, two.ID)
	refusedOn(t, "with a database", err, "server", "two still has 1 database:")
	ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Servers().Move(ctx, shop.Record.ID, w.machine.ID)
	}))
	must(w.Operator.RemoveServer(w.ctx, two.ID))(t)
	_, err = w.Operator.RemoveServer(w.ctx, two.ID)
	refusedOn(t, "again", err, "server", "does not exist")
	log := must(w.Operator.InstallationAudit(w.ctx, ports.Page{}))(t)
	equal(t, "logged", slices.ContainsFunc(log, func(e base.By[audit.Entry]) bool {
		return e.What.Action == audit.ServerRemoved && e.What.Details["server"] == "two"
	}), true)
}

// Of a creation and a removal at the same moment one comes first: the database never stands on a server that is gone.
func TestACreationMeetsARemoval(t *testing.T) {
	w := newWorld(t)
	off := false
	must(w.Operator.SetServer(w.ctx, w.machine.ID, operator.ServerChange{Enabled: &off}))(t)
	for i := range 20 {
		name := "s" + string(rune('a'+i))
		s := must(w.Operator.AddServer(w.ctx, newServer(name)))(t)
		removed := make(chan error, 1)
		go func() {
			time.Sleep(time.Duration(i%4) * 100 * time.Microsecond)
			_, err := w.Operator.RemoveServer(w.ctx, s.ID)
			removed <- err
		}()
		made, err := w.Databases.Create(w.ctx, w.caller, request(name+"-db"))
		gone := <-removed
		switch {
		case err == nil && gone == nil:
			t.Fatalf("%s was made on a server that is gone", made.Record.Name)
		case err == nil:
			equal(t, "status", made.Record.Status, database.Active)
			must(w.Operator.SetServer(w.ctx, s.ID, operator.ServerChange{Enabled: &off}))(t)
		case gone != nil:
			t.Fatal(err, gone)
		}
	}
}
