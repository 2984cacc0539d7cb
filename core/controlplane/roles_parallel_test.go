package controlplane_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
)

// Different keys at the same time: never more than the rules allow, ordinals without gaps, and one role at a time.
func TestManyCreates(t *testing.T) {
	w := newRoleWorld(t)
	r := w.here()
	var running sync.WaitGroup
	for i := range 20 {
		running.Go(func() {
			for full := false; !full; {
				_, err := w.Roles.Create(w.ctx, r, wanted(fmt.Sprint("role ", i)))
				if err == nil {
					return
				}
				list, _ := w.Roles.List(w.ctx, r, true)
				full = len(list) == role.MaxRoles
				if !fault.Has(err, w.model.Conflict) {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	list := must(w.Roles.List(w.ctx, w.here(), true))(t)
	equal(t, "roles", len(list), role.MaxRoles)
	for i, got := range list {
		equal(t, "ordinal", got.Ordinal, i+1)
		equal(t, "status", got.Status, role.Ready)
	}
}

// Rotations, revocation, reveals and a deletion at the same time: a password that was shown was in force between the request and
// its answer, so none of a credential generation that the log does not know; at the end nothing is left.
func TestEverythingAtOnce(t *testing.T) {
	w := newRoleWorld(t)
	made := w.role("report")
	r := w.here()
	expected := []fault.Code{w.model.Conflict, fault.RoleNotFound}
	check := func(what string, err error) {
		if err != nil && !slices.Contains(expected, fault.CodeOf(err)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var mu sync.Mutex
	shown := map[int64]string{}
	var running sync.WaitGroup
	for i := range 60 {
		running.Go(func() {
			_, err := w.Roles.Change(w.ctx, r, made.ID, role.Rotation, idempotency.Key(fmt.Sprint("rotate ", i)))
			check("rotate", err)
		})
		running.Go(func() {
			got, err := w.Roles.Reveal(w.ctx, r, made.ID)
			check("reveal", err)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if before, again := shown[got.CredentialGeneration]; again && before != got.Password {
				t.Error("two passwords of one credential generation")
			}
			shown[got.CredentialGeneration] = got.Password
		})
		if i == 40 {
			running.Go(func() {
				_, err := w.Roles.Change(w.ctx, r, made.ID, role.Revocation, "revoke")
				check("revoke", err)
			})
		}
	}
	running.Wait()
	equal(t, "done", must(w.Roles.Delete(w.ctx, w.here(), made.ID))(t).Done, true)
	for generation, password := range shown {
		if w.getsIn(made.Username, password) {
			t.Errorf("the password of generation %d still gets in", generation)
		}
	}
	equal(t, "logins on the server", len(w.server.Logins()), w.came)
}

// Deletions by many are one deletion.
func TestManyDeletions(t *testing.T) {
	w := newRoleWorld(t)
	made := w.role("report")
	r := w.here()
	var running sync.WaitGroup
	for range 50 {
		running.Go(func() {
			got, err := w.Roles.Delete(w.ctx, r, made.ID)
			if err != nil || !got.Done {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	running.Wait()
	equal(t, "revoked in the log", len(w.details(audit.RoleRevoked)), 1)
	equal(t, "removed in the log", len(w.details(audit.RoleRemoved)), 1)
}
