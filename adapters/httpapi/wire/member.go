package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
)

// Owner is the owner of a database.
type Owner struct {
	UserID id.UserID `json:"userId"`
	Email  string    `json:"email" example:"ada@example.org"`
	Name   string    `json:"name" example:"Ada"`
}

// Member is a member of a database; ID is the membership's.
type Member struct {
	ID        id.MembershipID  `json:"id"`
	UserID    id.UserID        `json:"userId"`
	Email     string           `json:"email" example:"bob@example.org"`
	Name      string           `json:"name" example:"Bob"`
	Role      account.Standing `json:"role" enum:"admin,developer,viewer" example:"developer"`
	CreatedAt time.Time        `json:"createdAt"`
}

// Invitation is an invitation that is open or expired.
type Invitation struct {
	ID        id.InvitationID  `json:"id"`
	Email     string           `json:"email" example:"bob@example.org"`
	Role      account.Standing `json:"role" enum:"admin,developer,viewer" example:"developer"`
	Status    member.Status    `json:"status" enum:"open,expired" example:"open"`
	ExpiresAt time.Time        `json:"expiresAt"`
	CreatedAt time.Time        `json:"createdAt"`
}

// Members are the people of a database.
type Members struct {
	Owner       Owner        `json:"owner"`
	Members     []Member     `json:"members"`
	Invitations []Invitation `json:"invitations"`
}

// AddMember adds somebody to a database.
type AddMember struct {
	Email string           `json:"email" description:"a mail address, without regard to case" example:"bob@example.org"`
	Role  account.Standing `json:"role" enum:"admin,developer,viewer" example:"developer"`
}

// The kinds of what became of an address.
const (
	KindMember     = "member"
	KindInvitation = "invitation"
)

// AddedMember is a member, whose UserID and Name are then set, or an invitation with Status and ExpiresAt; Kind tells which. ID
// is that of the membership or of the invitation.
type AddedMember struct {
	Kind      string           `json:"kind" enum:"member,invitation" example:"invitation"`
	ID        string           `json:"id" format:"uuid"`
	UserID    id.UserID        `json:"userId,omitzero"`
	Email     string           `json:"email" example:"bob@example.org"`
	Name      string           `json:"name,omitzero" example:"Bob"`
	Role      account.Standing `json:"role" enum:"admin,developer,viewer" example:"developer"`
	Status    member.Status    `json:"status,omitzero" enum:"open" example:"open"`
	ExpiresAt time.Time        `json:"expiresAt,omitzero"`
	CreatedAt time.Time        `json:"createdAt"`
}

// SetMemberRole changes the role of a member.
type SetMemberRole struct {
	Role account.Standing `json:"role" enum:"admin,developer,viewer" example:"viewer"`
}

// AcceptInvitation accepts an invitation. Name and password are required where the invited address is no user's yet.
type AcceptInvitation struct {
	Token    string  `json:"token" description:"from the invitation's mail" example:"k3J0p8sWq2TzB7vYx5NcR1mDf6HgL9aEuZoQiVtS"`
	Name     *string `json:"name,omitzero" description:"of a new person" example:"Bob"`
	Password *string `json:"password,omitzero" description:"of a new person, 8-200 characters" example:"correct horse battery"`
}

// AcceptedInvitation is the membership that an acceptance made; ID is the membership's.
type AcceptedInvitation struct {
	ID         id.MembershipID  `json:"id"`
	DatabaseID id.DatabaseID    `json:"databaseId"`
	UserID     id.UserID        `json:"userId"`
	Email      string           `json:"email" example:"bob@example.org"`
	Name       string           `json:"name" example:"Bob"`
	Role       account.Standing `json:"role" enum:"admin,developer,viewer" example:"developer"`
	CreatedAt  time.Time        `json:"createdAt"`
}
