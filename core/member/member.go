// Package member holds the people whom an account lets use one of its databases: members, and those who are invited.
package member

import (
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Roles are the standings that a member can have, from most to least.
var Roles = []account.Standing{account.Admin, account.Developer, account.Viewer}

// ParseRole accepts exactly the three names.
func ParseRole(s string) (account.Standing, error) {
	return fault.OneOf("role", s, account.Admin, account.Developer, account.Viewer)
}

// Membership is a user's role on another account's database.
type Membership struct {
	ID         id.MembershipID  `db:"id"`
	DatabaseID id.DatabaseID    `db:"database_id"`
	UserID     id.UserID        `db:"user_id"`
	Role       account.Standing `db:"role"`
	CreatedAt  time.Time        `db:"created_at"`
}

// Member is a membership and whose it is.
type Member struct {
	Membership
	Email string `db:"email"`
	Name  string `db:"name"`
}

// Bounds of the people of one database.
const (
	MaxOpen   = 50  // open invitations
	MaxPeople = 500 // members and open invitations together
)

// AdmitMember returns MEMBER_CONFLICT where a database has no room for one more member.
func AdmitMember(members int, invited []Invitation, now time.Time) error {
	if members+open(invited, now) >= MaxPeople {
		return fault.New(fault.MemberConflict, "the database has %d members and invitations, which is the most it can have", MaxPeople)
	}
	return nil
}

// AdmitInvitation returns MEMBER_CONFLICT where a database has no room for one more open invitation. An open one may get a new
// token whatever the number: it has its place already.
func AdmitInvitation(members int, invited []Invitation, now time.Time) error {
	if n := open(invited, now); n >= MaxOpen {
		return fault.New(fault.MemberConflict,
			"%d invitations to the database are open, which is the most it can have; delete one that is no longer wanted", n)
	}
	return AdmitMember(members, invited, now)
}

func open(list []Invitation, now time.Time) (n int) {
	for _, i := range list {
		if i.At(now).Status == Open {
			n++
		}
	}
	return n
}

// ErrOwner is the refusal to make the owner of a database its member.
func ErrOwner() error {
	return fault.New(fault.MemberConflict, "this is the address of the database's owner, who cannot be a member")
}
