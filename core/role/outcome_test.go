package role

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
)

func TestProofs(t *testing.T) {
	shut := Proof{NoneLeft: true, OldRefused: true}
	accepted, missingConnect := shut, shut
	accepted.NewAccepted, missingConnect.ConnectMissing = true, true
	lapsed, closed := shut, shut
	lapsed.Lapsed, closed.Closed = true, true
	cases := []struct {
		name  string
		proof Proof
		had   bool
		// rotates and shuts say whether it is enough for a rotation, and for a revocation or an expiry.
		rotates, shuts bool
	}{
		{"nothing", Proof{}, true, false, false},
		{"nobody left, the old password not tried", Proof{NoneLeft: true}, true, false, false},
		{"nobody left, and no password before", Proof{NoneLeft: true}, false, false, true},
		{"the old password refused, somebody left", Proof{OldRefused: true, NewAccepted: true}, true, false, false},
		{"shut", shut, true, false, true},
		{"the new password accepted", accepted, true, true, true},
		{"the new password accepted, CONNECT withdrawn", missingConnect, true, true, true},
		{"the new password's validity over", lapsed, true, true, true},
		{"the new password's validity over, somebody left", Proof{Lapsed: true, OldRefused: true}, true, false, false},
		{"the new password's validity over, the old one not tried", Proof{Lapsed: true, NoneLeft: true}, true, false, false},
		{"the database closed", closed, true, true, true},
		{"the database closed, the old password not tried", Proof{Closed: true, NoneLeft: true}, true, false, false},
		{"the new password alone", Proof{NewAccepted: true}, true, false, false},
		{"absent", Proof{NoneLeft: true, Absent: true}, true, false, true},
		{"absent, somebody left", Proof{Absent: true}, true, false, false},
	}
	for _, c := range cases {
		for kind, want := range map[Kind]bool{Rotation: c.rotates, Revocation: c.shuts, Expiry: c.shuts} {
			if got := (Change{Kind: kind}).Proves(Result{Proof: c.proof}, c.had); got != want {
				t.Errorf("%s: proves a %s: %v", c.name, kind, got)
			}
		}
	}
	for kind, want := range map[Kind]bool{Rotation: true, Revocation: false, Expiry: false, Removal: true} {
		if got := (Change{Kind: kind}).Proves(Result{Missing: true}, true); got != want {
			t.Errorf("a missing login settles a %s: %v", kind, got)
		}
	}
}

func TestOutcomes(t *testing.T) {
	depends := Result{Dependencies: Dependencies{Truncated: true}}
	cases := []struct {
		kind   Kind
		result Result
		change ChangeEvent
		event  Event
	}{
		{Rotation, Result{}, Confirmed, Rotated}, {Rotation, Result{Missing: true}, Declined, Undone},
		{Revocation, Result{}, Confirmed, Shut}, {Expiry, Result{}, Confirmed, Shut},
		{Removal, Result{}, Confirmed, Dropped}, {Removal, depends, Declined, Kept},
	}
	for _, c := range cases {
		change, event := Change{Kind: c.kind}.Outcome(c.result)
		if change != c.change || event != c.event || !slices.Contains(answers[c.kind], event) {
			t.Errorf("%s, %+v: %s, %s", c.kind, c.result, change, event)
		}
	}
}

func TestRotationGivesItsPassword(t *testing.T) {
	end := noon
	c := Change{
		ID: someChange, RoleID: someRole, Kind: Rotation, CredentialGeneration: 2, ExpiresAt: &end,
		Verifier: "v2", Sealed: []byte("p2"),
	}
	r := Role{ID: someRole, Status: Ready, CredentialGeneration: 1, Verifier: "v1", Sealed: []byte("p1")}
	begun := r.Begun(c, machine.To(Updating, StartProof))
	if begun.Status != Updating || begun.ChangeID != someChange || begun.CredentialGeneration != 1 || begun.Verifier != "v1" {
		t.Errorf("%+v", begun)
	}
	rotated, err := begun.Concluded(c, Rotated)
	if err != nil || rotated.Status != Ready || rotated.ChangeID != "" || rotated.CredentialGeneration != 2 ||
		rotated.Verifier != "v2" || string(rotated.Sealed) != "p2" || rotated.CredentialExpiresAt != &end {
		t.Errorf("%+v, %v", rotated, err)
	}
	undone, err := begun.Concluded(c, Undone)
	if err != nil || undone.Status != Ready || undone.ChangeID != "" || undone.CredentialGeneration != 1 || undone.Verifier != "v1" {
		t.Errorf("%+v, %v", undone, err)
	}
	if _, err := r.Concluded(c, Rotated); !fault.Has(err, fault.ManagedRoleConflict) {
		t.Errorf("a role that nothing is pending of was rotated: %v", err)
	}
}

func TestReplayOfACreate(t *testing.T) {
	for _, status := range Statuses {
		known := Role{ID: someRole, Status: status, Fingerprint: someRequest.Fingerprint()}
		if err := calmScene(known).AdmitsReplay(known, someRequest, noon); (err == nil) != (status != Removed) {
			t.Errorf("%s: %v", status, err)
		}
		half := status == Reserved || status == SQLReady
		if err := stopped(calmScene(known)).AdmitsReplay(known, someRequest, noon); (err == nil) != (status != Removed && !half) {
			t.Errorf("%s, stopped: %v", status, err)
		}
		other := someRequest
		other.ConnectionLimit++
		if err := calmScene(known).AdmitsReplay(known, other, noon); !fault.Has(err, fault.ManagedRoleConflict) {
			t.Errorf("%s, another request: %v", status, err)
		}
		late := known
		late.CredentialExpiresAt = &noon
		if err := calmScene(late).AdmitsReplay(late, someRequest, noon); (err == nil) != (status != Removed && !half) {
			t.Errorf("%s, its validity over: %v", status, err)
		}
		known.ChangeID = someChange
		if err := calmScene(known).AdmitsReplay(known, someRequest, noon); half && !fault.Has(err, fault.ManagedRoleConflict) {
			t.Errorf("%s, being removed: %v", status, err)
		}
	}
}

func TestRemovalGoesOn(t *testing.T) {
	cases := []struct {
		status Status
		kind   Kind
		of     Role
		delete bool
		remove bool
	}{
		{Updating, Revocation, Role{ID: someRole}, true, false},
		{Revoked, Removal, Role{ID: someRole}, true, true},
		{Reserved, Removal, Role{ID: someRole}, true, false},
		{SQLReady, Removal, Role{ID: someRole}, true, false},
		{Updating, Rotation, Role{ID: someRole}, false, false},
		{Expired, Expiry, Role{ID: someRole}, false, false},
		{Revoked, Removal, Role{ID: otherRole}, false, false},
	}
	for _, c := range cases {
		r := Role{ID: someRole, Status: c.status}
		s := calmScene(r)
		s.Change = &Change{ID: someChange, RoleID: c.of.ID, Kind: c.kind}
		if del, rem := s.ResumesRemoval(r, Delete), s.ResumesRemoval(r, Remove); del != c.delete || rem != c.remove {
			t.Errorf("%s under a %s of %s: %v, %v", c.status, c.kind, c.of.ID, del, rem)
		}
	}
	if calmScene().ResumesRemoval(Role{ID: someRole, Status: Revoked}, Remove) {
		t.Error("nothing is pending")
	}
}
