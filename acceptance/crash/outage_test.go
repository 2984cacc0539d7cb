package crash_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/hosts/cluster"
)

// insists sends a create again and again, as a client with an Idempotency-Key may, until it is answered 201. Every other answer
// must be an error that says what it is.
func (r request) insists(t *testing.T, w *world) (databaseAnswer, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	for {
		a, err := r.user.try(ctx, w.api, http.MethodPost, "/databases", r.key, r.body)
		switch {
		case err != nil:
			return databaseAnswer{}, err
		case a.status == http.StatusCreated:
			return read[databaseAnswer](t, a), nil
		case a.status < http.StatusInternalServerError || a.code() == "":
			return databaseAnswer{}, fmt.Errorf("answer %d: %s", a.status, a.text)
		}
		select {
		case <-ctx.Done():
			return databaseAnswer{}, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Whatever is promised while the metadata database goes down and comes back, cleanly or not, is kept.
func TestMetadataRestartedUnderLoad(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	const clients, each = 4, 4
	u := w.newUser(t, clients*each)
	var crowd sync.WaitGroup
	made := make(chan databaseAnswer, clients*each)
	for range clients {
		crowd.Go(func() {
			for range each {
				name := newName("load")
				r := request{user: u, key: name, body: createBody{Name: name, DisplayName: name}}
				d, err := r.insists(t, w)
				if err != nil {
					t.Error(err)
					return
				}
				made <- d
				g := guest{user: u, db: d}
				if _, err := u.try(t.Context(), w.api, http.MethodPost, g.path("/backups"), "", nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	kept := []databaseAnswer{<-made}
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

	r := newRequest(t, w, "managed")
	a, err := r.send(t, w.api)
	noError(t, err)
	if a.status != http.StatusInternalServerError || a.code() != "AGENT_ERROR" {
		t.Errorf("create: %d %s", a.status, a.text)
	}
	g.user.do(t, w.api, http.MethodGet, "/databases", "", nil).is(t, http.StatusOK)
	g.user.do(t, w.api, http.MethodGet, g.path(""), "", nil).is(t, http.StatusOK)
	other := newRequestedAllowlist(t, w, g)
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
	g.user.do(t, w.api, http.MethodDelete, g.path("/network/allowlist/"+other), "", nil).is(t, http.StatusNoContent)
	noError(t, g.comesIn(t, w))
	r.fills(t, w.api, 0) // the create that failed took no place
	w.settled(t)
}

// newRequestedAllowlist adds an entry while nobody can enforce it, and returns its ID.
func newRequestedAllowlist(t *testing.T, w *world, g guest) string {
	t.Helper()
	a := g.user.do(t, w.api, http.MethodPost, g.path("/network/allowlist"), "", map[string]string{"cidr": elsewhere})
	if a.code() != "AGENT_ERROR" {
		t.Errorf("an entry that nobody enforces yet: %d %s", a.status, a.text)
	}
	list := g.user.do(t, w.api, http.MethodGet, g.path("/network/allowlist"), "", nil).is(t, http.StatusOK)
	entries := read[struct{ Data []struct{ ID string } }](t, list).Data
	if len(entries) != 1 {
		t.Fatalf("the list is %s", list.text)
	}
	return entries[0].ID
}

// While PgBouncer is away no create is confirmed; when it is back, what was begun is finished and customers are let in again.
func TestPoolerAway(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	g := newLoadedGuest(t, w, "pooler")
	noError(t, w.Pooler.Kill())
	r := newRequest(t, w, "managed")
	a, err := r.send(t, w.api)
	noError(t, err)
	if a.status != http.StatusInternalServerError || a.code() != "AGENT_ERROR" {
		t.Errorf("create: %d %s", a.status, a.text)
	}
	if err := g.comesIn(t, w); err == nil {
		t.Error("a customer gets in without a pooler")
	}
	noError(t, w.Pooler.Start(context.WithoutCancel(t.Context())))
	w.settled(t)
	noError(t, g.comesIn(t, w))
	d, err := r.insists(t, w)
	noError(t, err)
	w.logsIn(t, d)
	r.fills(t, w.api, 1)
	w.settled(t)
}
