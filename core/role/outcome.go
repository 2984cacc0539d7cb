package role

import (
	"slices"

	"github.com/pgherd/pgherd/core/machine"
)

// Result is an agent's definite answer to a change.
type Result struct {
	Proof        Proof        // of every kind but a removal
	Dependencies Dependencies // of a removal
	Missing      bool         // of a rotation: the server has no such login, and nothing was changed
}

// Proves reports whether the result proves that the change is done. hadPassword says that there was an old password to
// invalidate.
func (c Change) Proves(r Result, hadPassword bool) bool {
	switch {
	case c.Kind == Removal || c.Kind == Rotation && r.Missing:
		return true
	case !r.Proof.NoneLeft, hadPassword && !r.Proof.OldRefused && !r.Proof.Absent:
		return false
	}
	// An expired password lets nobody in. The role itself expires next. Nor does a database that is closed.
	return c.Kind != Rotation || r.Proof.NewAccepted || r.Proof.ConnectMissing || r.Proof.Lapsed || r.Proof.Closed
}

// Outcome is the effect of a result: what happens to the change, and to its role.
func (c Change) Outcome(r Result) (ChangeEvent, Event) {
	switch {
	case c.Kind == Removal && r.Dependencies.Any():
		return Declined, Kept
	case c.Kind == Rotation && r.Missing:
		return Declined, Undone
	}
	return Confirmed, c.Kind.done()
}

// done is the event of a role whose change was carried out.
func (k Kind) done() Event {
	switch k {
	case Rotation:
		return Rotated
	case Removal:
		return Dropped
	case Revocation, Expiry:
	}
	return Shut
}

// Begun returns the role as it is while the change is pending.
func (r Role) Begun(c Change, cell machine.Cell[Status]) Role {
	r.Status, r.ChangeID = cell.Next, c.ID
	return r
}

// Concluded returns the role as its change leaves it.
func (r Role) Concluded(c Change, on Event) (Role, error) {
	cell, err := r.Status.Decide(on)
	if err != nil {
		return r, err
	}
	r.Status, r.ChangeID = cell.Next, ""
	if on == Rotated {
		r.CredentialGeneration, r.CredentialExpiresAt = c.CredentialGeneration, c.ExpiresAt
		r.Verifier, r.Sealed = c.Verifier, c.Sealed
	}
	if slices.Contains(cell.Effects, Forget) {
		r = r.Forgotten()
	}
	return r, nil
}
