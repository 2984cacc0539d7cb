package role

import "time"

// Login is a login as it stands on a server, or as it shall stand. The server's agent compares the two.
type Login struct {
	Present  bool // the role exists
	MayLogIn bool
	Password PasswordState
	// ValidUntil is the end of its password's validity; nil means never.
	ValidUntil *time.Time
	// Limit bounds its connections; 0 in what shall be leaves it as it is.
	Limit int
	// InGroup says that it inherits from the group of its access profile; false in what shall be leaves it as it is.
	InGroup bool
}

// PasswordState is what is known of a login's password without reading it.
type PasswordState string

// The states. As what shall be, OtherPassword leaves the password and its validity as they are.
const (
	OtherPassword PasswordState = ""       // none that we asked about
	OurPassword   PasswordState = "ours"   // that of the verifier in question
	NoPassword    PasswordState = "absent" // none at all
)

// Action is one step from a login as it stands to one as it shall.
type Action string

// The actions, in the order in which Plan returns them: what takes away comes first, and the log-in is given last.
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

// Plan returns what leads from the observed login to the desired one: nothing where they agree. Whoever was interrupted observes
// again, and gets what is left.
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
