package role

import (
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/machine"
)

// AdmitsSetup decides about preparing a reserved role or admitting a prepared one, as the event says. A role whose password is
// no longer valid would never become ready, and is refused.
func (s Scene) AdmitsSetup(r Role, e Event, now time.Time) (machine.Cell[Status], error) {
	cell, err := r.Status.Decide(e)
	switch {
	case err != nil:
		return cell, err
	case r.ChangeID != "":
		return cell, conflictf("the role is being removed")
	case len(cell.Effects) == 0:
		return cell, nil
	case r.CredentialExpired(now):
		return cell, conflictf("the role's validity ended before it was ready: delete it and make another")
	}
	return cell, s.Calm()
}

// AdmitsRename decides about a new label, which has been validated before.
func (s Scene) AdmitsRename(r Role, name string) error {
	if _, err := r.Status.Decide(Rename); err != nil {
		return err
	}
	return s.nameFree(name, r)
}

// AdmitsReveal decides about showing a password: the role must be ready, without a pending change, and its password valid.
func (r Role) AdmitsReveal(now time.Time) error {
	if _, err := r.Status.Decide(Reveal); err != nil {
		return err
	}
	if r.CredentialExpired(now) {
		return conflictf("the credential's validity has ended")
	}
	return nil
}

// AdmitsChange decides about a rotation or revocation that a user asks for.
func (s Scene) AdmitsChange(r Role, k Kind, now time.Time) (machine.Cell[Status], error) {
	s = s.forPasswords()
	event := Rotate
	if k == Revocation {
		event = Revoke
	}
	cell, err := r.Status.Decide(event)
	switch {
	case err != nil:
		return cell, err
	case k == Revocation:
		return cell, s.closable()
	case r.CredentialExpired(now):
		return cell, conflictf("the credential's validity has ended; it can no longer be rotated")
	}
	return cell, s.Calm()
}

// AdmitsLoginChange decides about rotating the password of a login that was created with the database, of whatever model. It
// needs no groups.
func (s Scene) AdmitsLoginChange() error { return s.forPasswords().undisturbed(database.Active) }

// AdmitsRemoval decides about the removal of a role: event is Delete or Remove. A cell without effects means that the role is
// already removed.
func (s Scene) AdmitsRemoval(r Role, e Event) (machine.Cell[Status], error) {
	cell, err := r.Status.Decide(e)
	if err != nil || len(cell.Effects) == 0 {
		return cell, err
	}
	return cell, s.closable()
}

// ResumesRemoval reports whether a pending change of the role is part of its removal: the removal itself, or the revocation
// before it.
func (s Scene) ResumesRemoval(r Role, e Event) bool {
	switch {
	case s.Change == nil || s.Change.RoleID != r.ID:
		return false
	case s.Change.Kind == Revocation:
		return e == Delete
	}
	_, err := r.Status.Decide(e)
	return err == nil && s.Change.Kind == Removal
}

// AdmitsExpiry decides whether the batch host may begin to shut a role whose password is no longer valid. It waits until other
// work is done.
func (s Scene) AdmitsExpiry(r Role, now time.Time) (cell machine.Cell[Status], ok bool) {
	cell, err := r.Status.Decide(Expire)
	return cell, err == nil && r.CredentialExpired(now) && s.Change == nil && s.Database.Status == database.Active &&
		s.Blocking == ""
}
