package role

// Observation is what a look at a login shows of a change that was sent to its server.
type Observation string

// The observations. "Shut" means that the password is stored and nobody gets in with it.
const (
	NewInForce      Observation = "new_in_force"
	NewShut         Observation = "new_shut"
	OldInForce      Observation = "old_in_force"
	OldShut         Observation = "old_shut"
	NeitherPassword Observation = "neither_password" // neither of the two, or none
	NoLogin         Observation = "no_login"
	// Unseen is where nothing is looked at, because the server is gone.
	Unseen Observation = "unseen"
)

// Settled tells what has become of a change that its server refuses for good. Where the observation leaves that open the
// change is Postponed: the stored password must never be another one than the server's, and nobody may be told of an end that
// did not come.
func (c Change) Settled(seen Observation) (ChangeEvent, Event) {
	switch {
	case seen == NoLogin && c.Kind != Rotation, seen == NewInForce && c.Kind == Rotation:
		return Confirmed, c.Kind.done()
	case seen == NoLogin, seen == OldInForce && (c.Kind == Rotation || c.Kind == Revocation), c.Kind == Removal:
		return Declined, Undone
	}
	return Postponed, ""
}

// CutShort is Settled for an operator who ends the change whatever is seen. A rotation takes effect if the server has stored its
// password: the next one must know that. Otherwise the change did nothing, and can be asked for again.
func (c Change) CutShort(seen Observation) (ChangeEvent, Event) {
	on, of := c.Settled(seen)
	switch {
	case on != Postponed:
		return on, of
	case c.Kind == Rotation && seen == NewShut:
		return Confirmed, Rotated
	}
	return Declined, Undone
}
