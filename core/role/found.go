package role

import (
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/fault"
)

// Trait is something of an additional role on its server that others than the service can change.
type Trait string

// The traits.
const (
	Attributes      Trait = "attributes"
	ConnectionLimit Trait = "connection limit" // PostgreSQL's own
	Memberships     Trait = "memberships"      // in other roles than the group of its access profile
	Group           Trait = "group"            // that of its access profile
	Password        Trait = "password"
	LogIn           Trait = "log-in"
)

// Altered names what of a role is not as it was made, whether it is admitted yet or not. The limit is PostgreSQL's own.
func (l Login) Altered(limit int) (list []Trait) {
	if l.Empowered {
		list = append(list, Attributes)
	}
	if l.Limit != limit {
		list = append(list, ConnectionLimit)
	}
	if l.InOthers {
		list = append(list, Memberships)
	}
	return list
}

// Lacks names what an admitted role has and this one has not. letsIn says that the role's own log-in is open.
func (l Login) Lacks(letsIn bool) (list []Trait) {
	if !l.InGroup {
		list = append(list, Group)
	}
	if l.Password != OurPassword {
		list = append(list, Password)
	}
	if !letsIn {
		list = append(list, LogIn)
	}
	return list
}

// ListTraits writes traits for people.
func ListTraits(list []Trait) string {
	words := make([]string, 0, len(list))
	for _, t := range list {
		words = append(words, string(t))
	}
	return strings.Join(words, ", ")
}

// Found is what one look at an additional role on its server shows.
type Found struct {
	Present bool `json:"present"`
	// Open says that something lets the role in, or will once its database lets anybody in.
	Open    bool    `json:"open"`
	Altered []Trait `json:"altered,omitempty"`
	Lacks   []Trait `json:"lacks,omitempty"`
}

// Reconciled decides what a look at the server makes of a role without a pending change: the step of its set-up that turns out
// to be done, or nothing. done says that the server has concluded the last step that was sent. MANAGED_ROLE_CONFLICT: the role is
// not as its record says, or would say after that step.
func (r Role) Reconciled(done bool, f Found) (Event, error) {
	admitted := r.Status == Ready || r.Status == SQLReady && done
	switch {
	case r.Status == Revoked || r.Status == Expired:
		if f.Open {
			return "", conflictf("the role is %s, but the database server would let it in: delete it", r.Status)
		}
		return "", nil
	case !f.Present && (r.Status != Reserved || done):
		return "", ErrLost(nil)
	case len(f.Altered) > 0:
		return "", ErrAltered(nil, f.Altered)
	case admitted && len(f.Lacks) > 0:
		return "", errNotAsAdmitted(r.Status, f.Lacks)
	case !admitted && f.Open:
		return "", conflictf("the role may be able to log in, and its admission is not proven: repeat its next step, or delete it")
	case done && r.Status == Reserved:
		return Prepare, nil
	case done && r.Status == SQLReady:
		return Admit, nil
	}
	return "", nil
}

// ErrLost is the refusal for a role that its server no longer has.
func ErrLost(cause error) error {
	return fault.Wrap(cause, fault.ManagedRoleConflict, "the database server no longer has the role: delete it and make another")
}

// ErrAltered is the refusal for a role that somebody has changed on its server.
func ErrAltered(cause error, list []Trait) error {
	named := ""
	if len(list) > 0 {
		named = " (" + ListTraits(list) + ")"
	}
	return fault.Wrap(cause, fault.ManagedRoleConflict,
		"the role on the database server is not as it was made%s: delete it and make another", named)
}

// errNotAsAdmitted tells what repairs the role: a rotation sets a password and opens the log-in, but puts no role in a group.
func errNotAsAdmitted(s Status, lacks []Trait) error {
	repair := "a rotation repairs it"
	if s != Ready || slices.Contains(lacks, Group) {
		repair = "delete it and make another"
	}
	return conflictf("the role on the database server is not as it was admitted (%s): %s", ListTraits(lacks), repair)
}
