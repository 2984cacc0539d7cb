package role

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
)

func stopped(s Scene) Scene {
	s.Database.Status = database.Stopped
	return s
}

func TestSetupGoesOn(t *testing.T) {
	cases := map[string]struct {
		role Role
		e    Event
		code fault.Code
		acts bool // something is left to do at the agent
	}{
		"prepare":                   {Role{Status: Reserved}, Prepare, "", true},
		"prepare again":             {Role{Status: SQLReady}, Prepare, "", false},
		"admit":                     {Role{Status: SQLReady}, Admit, "", true},
		"admit again":               {Role{Status: Ready}, Admit, "", false},
		"admit too early":           {Role{Status: Reserved}, Admit, fault.ManagedRoleConflict, false},
		"prepare a ready one":       {Role{Status: Ready}, Prepare, fault.ManagedRoleConflict, false},
		"prepare a revoked one":     {Role{Status: Revoked}, Prepare, fault.ManagedRoleConflict, false},
		"prepare a removed one":     {Role{Status: Removed}, Prepare, fault.RoleNotFound, false},
		"prepare one that goes":     {Role{Status: Reserved, ChangeID: someChange}, Prepare, fault.ManagedRoleConflict, false},
		"admit one that goes":       {Role{Status: SQLReady, ChangeID: someChange}, Admit, fault.ManagedRoleConflict, false},
		"again, of one that goes":   {Role{Status: SQLReady, ChangeID: someChange}, Prepare, fault.ManagedRoleConflict, false},
		"again, while it's rotated": {Role{Status: Updating, ChangeID: someChange}, Admit, fault.ManagedRoleConflict, false},
	}
	for name, c := range cases {
		cell, err := calmScene(c.role).AdmitsSetup(c.role, c.e, noon)
		if c.code == "" && err != nil || c.code != "" && !fault.Has(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
		if c.code == "" && (len(cell.Effects) > 0) != c.acts {
			t.Errorf("%s: %+v", name, cell)
		}
	}
	// What is done already is told on a stopped database too.
	if _, err := stopped(calmScene()).AdmitsSetup(Role{Status: SQLReady}, Prepare, noon); err != nil {
		t.Error(err)
	}
}

// A role that was not ready when its password's validity ended never will be; what is done already is told all the same.
func TestSetupAtTheEndOfValidity(t *testing.T) {
	end := noon.Add(time.Hour)
	for _, c := range []struct {
		status Status
		e      Event
		acts   bool
	}{
		{Reserved, Prepare, true}, {SQLReady, Admit, true}, {SQLReady, Prepare, false}, {Ready, Admit, false},
	} {
		r := Role{Status: c.status, CredentialExpiresAt: &end}
		if _, err := calmScene(r).AdmitsSetup(r, c.e, end.Add(-1)); err != nil {
			t.Errorf("%s/%s in time: %v", c.status, c.e, err)
		}
		_, err := calmScene(r).AdmitsSetup(r, c.e, end)
		if c.acts && !fault.Has(err, fault.ManagedRoleConflict) || !c.acts && err != nil {
			t.Errorf("%s/%s at the end: %v", c.status, c.e, err)
		}
		if _, err := calmScene(r).AdmitsRemoval(r, Delete); err != nil {
			t.Errorf("%s: it cannot be deleted: %v", c.status, err)
		}
	}
}

func TestRenames(t *testing.T) {
	own := Role{ID: someRole, DisplayName: "Reports", Status: Ready}
	other := Role{ID: otherRole, DisplayName: "Exports", Status: Revoked}
	for _, status := range Statuses {
		r := own
		r.Status = status
		err := stopped(calmScene(r, other)).AdmitsRename(r, "Imports")
		want := map[Status]fault.Code{Ready: "", Revoked: "", Removed: fault.RoleNotFound}
		code, listed := want[status]
		if !listed {
			code = fault.ManagedRoleConflict
		}
		if code == "" && err != nil || code != "" && !fault.Has(err, code) {
			t.Errorf("%s: %v", status, err)
		}
	}
	for name, ok := range map[string]bool{
		"Reports": true, "Re\u200dports": true, "Exports": false, "Exports\u200d": false, "exports": true,
	} {
		err := calmScene(own, other).AdmitsRename(own, name)
		if (err == nil) != ok || err != nil && !fault.Has(err, fault.ManagedRoleConflict) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestReveals(t *testing.T) {
	for _, status := range Statuses {
		err := Role{Status: status}.AdmitsReveal(noon)
		if (err == nil) != (status == Ready) {
			t.Errorf("%s: %v", status, err)
		}
	}
	end := noon.Add(time.Hour)
	r := Role{Status: Ready, CredentialExpiresAt: &end}
	for d, ok := range map[time.Duration]bool{0: true, time.Hour - 1: true, time.Hour: false, time.Hour + 1: false} {
		err := r.AdmitsReveal(noon.Add(d))
		if (err == nil) != ok || err != nil && !fault.Has(err, fault.ManagedRoleConflict) {
			t.Errorf("%s after noon: %v", d, err)
		}
	}
}

// A credential whose validity has ended can be revoked, not rotated, whether its role is marked already or not.
func TestChangesAtTheEndOfValidity(t *testing.T) {
	end := noon.Add(time.Hour)
	r := Role{ID: someRole, Status: Ready, CredentialExpiresAt: &end}
	expired := r
	expired.Status = Expired
	cases := []struct {
		name string
		role Role
		kind Kind
		at   time.Time
		ok   bool
	}{
		{"rotated in time", r, Rotation, end.Add(-1), true},
		{"rotated at the end", r, Rotation, end, false},
		{"revoked at the end", r, Revocation, end, true},
		{"rotated when marked", expired, Rotation, end, false},
		{"rotated when marked, the clock behind", expired, Rotation, noon, false},
		{"revoked when marked", expired, Revocation, end, true},
	}
	for _, c := range cases {
		cell, err := calmScene(c.role).AdmitsChange(c.role, c.kind, c.at)
		if (err == nil) != c.ok || err != nil && !fault.Has(err, fault.ManagedRoleConflict) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil && cell.Next != Updating {
			t.Errorf("%s: %+v", c.name, cell)
		}
	}
}

func TestChangesNeedAReadyRole(t *testing.T) {
	for _, status := range Statuses {
		_, rotate := calmScene().AdmitsChange(Role{Status: status}, Rotation, noon)
		_, revoke := calmScene().AdmitsChange(Role{Status: status}, Revocation, noon)
		if (rotate == nil) != (status == Ready) || (revoke == nil) != (status == Ready || status == Expired) {
			t.Errorf("%s: %v, %v", status, rotate, revoke)
		}
	}
}

func TestRemovals(t *testing.T) {
	begins := map[Event]map[Status]string{
		Delete: {Reserved: DropRole, SQLReady: DropRole, Ready: StartProof, Expired: StartProof, Revoked: DropRole},
		Remove: {Revoked: DropRole},
	}
	for e, want := range begins {
		for _, status := range Statuses {
			cell, err := calmScene().AdmitsRemoval(Role{Status: status}, e)
			switch effect, ok := want[status]; {
			case status == Removed:
				if err != nil || len(cell.Effects) > 0 {
					t.Errorf("%s of a removed role: %+v, %v", e, cell, err)
				}
			case !ok && !fault.Has(err, fault.ManagedRoleConflict):
				t.Errorf("%s/%s: %v", status, e, err)
			case ok && (err != nil || len(cell.Effects) != 1 || cell.Effects[0] != effect):
				t.Errorf("%s/%s: %+v, %v", status, e, cell, err)
			}
		}
	}
	for name, change := range unrest(ManagedRoles) {
		s := calmScene()
		change(&s)
		if _, err := s.AdmitsRemoval(Role{Status: Removed}, Remove); err != nil {
			t.Errorf("repeating a removal, %s: %v", name, err)
		}
	}
}

func TestExpiry(t *testing.T) {
	r := Role{Status: Ready, CredentialExpiresAt: &noon}
	if cell, ok := calmScene(r).AdmitsExpiry(r, noon); !ok || cell.Next != Expired {
		t.Errorf("at the end: %+v, %v", cell, ok)
	}
	if _, ok := calmScene(r).AdmitsExpiry(r, noon.Add(-1)); ok {
		t.Error("expired a moment too early")
	}
	if _, ok := calmScene(r).AdmitsExpiry(Role{Status: Ready}, noon); ok {
		t.Error("a credential without an end has expired")
	}
	for name, change := range unrest(ManagedRoles) {
		s := calmScene(r)
		change(&s)
		if _, ok := s.AdmitsExpiry(r, noon); ok && name != "single_login" { // which has no such roles
			t.Errorf("expiry goes on: %s", name)
		}
	}
	for _, status := range Statuses {
		r.Status = status
		if _, ok := calmScene(r).AdmitsExpiry(r, noon); ok != (status == Ready) {
			t.Errorf("%s: %v", status, ok)
		}
	}
}
