package crash_test

import (
	"context"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// insists sends a create again and again, as a client with an Idempotency-Key may, until it is answered 201. Every other answer
// must be an error that says what it is.
func (r request) insists(t *testing.T, w *world) (made wire.CreatedDatabase, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	err = persists(ctx, func() (pending bool, err error) {
		made, err = r.user.at(w.api).Databases.Create(ctx, r.body, r.key)
		return false, err
	})
	return made, err
}

// Whatever is promised while the metadata database goes down and comes back, cleanly or not, is kept.
func TestMetadataRestartedUnderLoad(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	const clients, each = 4, 4
	u := w.newUser(t, clients*each)
	var crowd sync.WaitGroup
	made := make(chan wire.CreatedDatabase, clients*each)
	for range clients {
		crowd.Go(func() {
			for range each {
				name := newName("load")
				r := request{user: u, key: apiclient.IdempotencyKey(name), body: wire.CreateDatabase{Name: name, DisplayName: name}}
				d, err := r.insists(t, w)
				if err != nil {
					t.Error(err)
					return
				}
				made <- d
				if _, err := u.at(w.api).Backups.Start(t.Context(), d.ID); err != nil && codeOf(err) == "" {
					t.Error(err)
				}
			}
		})
	}
	kept := []wire.CreatedDatabase{<-made}
	for _, mode := range []cluster.StopMode{cluster.Fast, cluster.Immediate} {
		noError(t, w.Metadata.Restart(soon(t), mode))
		if d, ok := <-made; ok { // the load goes on in between
			kept = append(kept, d)
		}
	}
	crowd.Wait()
	close(made)
	for d := range made {
		kept = append(kept, d)
	}
	w.settled(t)
	if known := w.databases(t); len(known) != len(kept) || len(kept) != clients*each {
		t.Errorf("%d databases were promised, %d exist", len(kept), len(known))
	}
	for _, d := range kept {
		w.logsIn(t, d)
	}
}

// While the agent is away, what needs it says so and what does not goes on. When it is back the rest follows by itself.
func TestAgentAway(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	g := newLoadedGuest(t, w, "away")
	release := g.holdUp(t)
	o := g.startBackup(t, w.api)
	w.atWork(t, o)
	noError(t, w.agent.Kill())

	r := newRequest(t, w, database.Managed)
	_, err := r.send(t, w.api)
	refused(t, "create", err, fault.AgentError)
	must(g.user.at(w.api).Databases.List().Page(soon(t), apiclient.Page{}))(t)
	g.status(t, w.api)
	_, err = g.addNetwork(t, w.api, elsewhere)
	refused(t, "an entry that nobody enforces yet", err, fault.AgentError)
	if open := g.operation(t, w.api, o.ID); open.Status != "running" {
		t.Errorf("the backup is %s while nobody knows of it", open.Status)
	}
	release()

	w.restartAgent(t)
	w.settled(t)
	if done := g.operation(t, w.api, o.ID); done.Status != "succeeded" {
		t.Errorf("the backup: %+v", done)
	}
	if err := g.comesIn(t, w); err == nil {
		t.Error("the allowlist is not enforced")
	}
	noError(t, g.removeNetwork(t, w.api, g.networks(t, w.api)[0]))
	noError(t, g.comesIn(t, w))
	r.fills(t, w.api, 0) // the create that failed took no place
	w.settled(t)
}

// While PgBouncer is away no create is confirmed; when it is back, what was begun is finished and customers are let in again.
func TestPoolerAway(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	g := newLoadedGuest(t, w, "pooler")
	noError(t, w.Pooler.Kill())
	r := newRequest(t, w, database.Managed)
	_, err := r.send(t, w.api)
	refused(t, "create", err, fault.AgentError)
	if err := g.comesIn(t, w); err == nil {
		t.Error("a customer gets in without a pooler")
	}
	noError(t, w.Pooler.Start(context.WithoutCancel(t.Context())))
	w.settled(t)
	noError(t, g.comesIn(t, w))
	d := must(r.insists(t, w))(t)
	w.logsIn(t, d)
	r.fills(t, w.api, 1)
	w.settled(t)
}
