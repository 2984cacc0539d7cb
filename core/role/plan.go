package role

import "time"

// Login is the actual or the desired state of a login on a server. The agent compares the two.
type Login struct {
	Present  bool // the role exists
	MayLogIn bool
	Password PasswordState
	// ValidUntil is the end of its password's validity; nil means never.
	ValidUntil *time.Time
	// Limit bounds its connections; 0 in a desired state leaves the limit as it is.
	Limit int
	// InGroup says that it inherits from the group of its access profile; false in a desired state leaves that as it is.
	InGroup bool
	// Empowered says that it has an attribute that no login is made with, and InOthers that it is in other roles than that group,
	// or otherwise than a login is put in it. Only an administrator of the server can have done that, and no plan changes it.
	Empowered bool
	InOthers  bool
}

// PasswordState is what is known of a login's password without reading it.
type PasswordState string

// The states. As a desired state, OtherPassword leaves the password and its validity as they are.
const (
	OtherPassword PasswordState = ""       // not the password in question
	OurPassword   PasswordState = "ours"   // matches the verifier in question
	NoPassword    PasswordState = "absent" // none at all
)

// Action is one step from the actual to the desired state of a login.
type Action string

// The actions, in the order in which Plan returns them: what restricts the login comes first, permission to log in comes last.
const (
	CreateRole    Action = "create role" // without log-in
	ForbidLogin   Action = "forbid log-in"
	ClearPassword Action = "clear password"
	SetLimit      Action = "set limit"
	JoinGroup     Action = "join group"
	SetPassword   Action = "set password" // with its validity
	AllowLogin    Action = "allow log-in"
	RemoveRole    Action = "remove role" // with the platform's grants
)

// Plan returns the actions that lead from the observed to the desired state, none if they agree. After an interruption,
// observing again and planning anew yields the remaining actions.
func Plan(desired, observed Login) []Action {
	if !desired.Present {
		if !observed.Present {
			return nil
		}
		return []Action{RemoveRole}
	}
	var plan []Action
	add := func(needed bool, a Action) {
		if needed {
			plan = append(plan, a)
		}
	}
	add(!observed.Present, CreateRole)
	add(!desired.MayLogIn && observed.MayLogIn, ForbidLogin)
	add(desired.Password == NoPassword && observed.Present && observed.Password != NoPassword, ClearPassword)
	add(desired.Limit != 0 && desired.Limit != observed.Limit, SetLimit)
	add(desired.InGroup && !observed.InGroup, JoinGroup)
	add(desired.Password == OurPassword && !desired.samePassword(observed), SetPassword)
	add(desired.MayLogIn && !observed.MayLogIn, AllowLogin)
	return plan
}

func (l Login) samePassword(observed Login) bool {
	if l.Password != observed.Password {
		return false
	}
	if l.ValidUntil == nil || observed.ValidUntil == nil {
		return l.ValidUntil == observed.ValidUntil
	}
	return l.ValidUntil.Equal(*observed.ValidUntil)
}
