package linear

import (
	"fmt"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

const parallel = 200

// answer is what one of many creates got.
type answer struct {
	asked role.Request
	got   roles.State
	err   error
}

// storm makes many creates at once, at every process in turn.
func (w *world) storm(request func(i int) role.Request) []answer {
	answers := make([]answer, parallel)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range answers {
		p, q := w.planes[i%len(w.planes)], request(i)
		reached := w.reach(p)
		all.Go(func() {
			<-start
			state, err := p.roles.Create(w.ctx, reached, q)
			answers[i] = answer{q, state, err}
		})
	}
	close(start)
	all.Wait()
	return answers
}

// only returns the one role of the database.
func (w *world) only() roles.State {
	w.t.Helper()
	list := must(w.planes[0].roles.List(w.ctx, w.reach(w.planes[0]), true))(w.t)
	if len(list) != 1 {
		w.t.Fatalf("%d roles, want 1: %v", len(list), list)
	}
	return list[0]
}

func oneKeyIsOneRole(t *testing.T, s setting) {
	w := newWorld(t, 1, s)
	answers := w.storm(func(int) role.Request {
		return role.Request{DisplayName: "Reports", AccessProfile: role.ReadOnly, ConnectionLimit: 2, Key: "one"}
	})
	made := w.only()
	for _, a := range answers {
		if a.err != nil || a.got.ID != made.ID || a.got.Status != role.Ready {
			t.Fatalf("%+v, %v; want role %s", a.got, a.err, made.ID)
		}
	}
	w.letsIn(made.ID)
}

func oneKeyHasOneWinner(t *testing.T, s setting) {
	w := newWorld(t, 2, s)
	answers := w.storm(func(i int) role.Request {
		return role.Request{
			DisplayName: fmt.Sprint("Reports ", i%5), AccessProfile: role.ReadOnly, ConnectionLimit: 1 + i%3, Key: "one",
		}
	})
	made := w.only()
	won := 0
	for _, a := range answers {
		switch {
		case a.asked.Fingerprint() != made.Fingerprint:
			if !fault.Has(a.err, fault.ManagedRoleConflict) {
				t.Fatalf("%+v: %+v, %v; want a conflict with role %+v", a.asked, a.got, a.err, made)
			}
		case a.err != nil || a.got.ID != made.ID || a.got.Status != role.Ready:
			t.Fatalf("%+v: %+v, %v; want role %s", a.asked, a.got, a.err, made.ID)
		default:
			won++
		}
	}
	if won < 2 {
		t.Errorf("%d requests of the winner's body, want more: there was nothing to race", won)
	}
	w.letsIn(made.ID)
}

// letsIn fails the test where a role's password does not get in.
func (w *world) letsIn(of id.RoleID) {
	w.t.Helper()
	found := must(w.planes[1].roles.Reveal(w.ctx, w.reach(w.planes[1]), of))(w.t)
	if !w.server.CanLogIn(customer, w.db.Record.Name, found.Username, found.Password) {
		w.t.Errorf("role %s does not get in", found.Username)
	}
}

func TestOneKeyIsOneRole(t *testing.T)    { oneKeyIsOneRole(t, setting{}) }
func TestOneKeyHasOneWinner(t *testing.T) { oneKeyHasOneWinner(t, setting{}) }
