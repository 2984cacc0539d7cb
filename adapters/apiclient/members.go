package apiclient

import (
	"context"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Members are the calls about the people of a database.
type Members struct{ c *Client }

const (
	membersPath     = "/databases/%s/members"
	invitationsPath = "/databases/%s/invitations"
)

// List reads the owner, the members and the invitations of a database.
func (m Members) List(ctx context.Context, database id.DatabaseID, opts ...Option) (wire.Members, error) {
	return data[wire.Members](ctx, m.c, get(membersPath, string(database)), opts)
}

// Add makes a user a member, sets the role of a member, or invites somebody by mail.
func (m Members) Add(ctx context.Context, database id.DatabaseID, b wire.AddMember, opts ...Option) (wire.AddedMember, error) {
	return data[wire.AddedMember](ctx, m.c, post(b, membersPath, string(database)), opts)
}

// SetRole changes the role of a member.
func (m Members) SetRole(
	ctx context.Context, database id.DatabaseID, membership id.MembershipID, b wire.SetMemberRole, opts ...Option,
) (wire.Member, error) {
	return data[wire.Member](ctx, m.c, patch(b, membersPath+"/%s", string(database), string(membership)), opts)
}

// Remove removes a member.
func (m Members) Remove(ctx context.Context, database id.DatabaseID, membership id.MembershipID, opts ...Option) error {
	return tell(ctx, m.c, remove(membersPath+"/%s", string(database), string(membership)).ofGone(fault.MemberNotFound), opts)
}

// Invitations reads the invitations to a database.
func (m Members) Invitations(ctx context.Context, database id.DatabaseID, opts ...Option) ([]wire.Invitation, error) {
	return data[[]wire.Invitation](ctx, m.c, get(invitationsPath, string(database)), opts)
}

// Resend mails an invitation again, with a new token.
func (m Members) Resend(
	ctx context.Context, database id.DatabaseID, invitation id.InvitationID, opts ...Option,
) (wire.Invitation, error) {
	return data[wire.Invitation](ctx, m.c, post(nil, invitationsPath+"/%s/resend", string(database), string(invitation)), opts)
}

// DeleteInvitation deletes an invitation.
func (m Members) DeleteInvitation(
	ctx context.Context, database id.DatabaseID, invitation id.InvitationID, opts ...Option,
) error {
	gone := remove(invitationsPath+"/%s", string(database), string(invitation)).ofGone(fault.InvitationNotFound)
	return tell(ctx, m.c, gone, opts)
}

// Accept becomes a member with the token of an invitation; it needs no key.
func (m Members) Accept(ctx context.Context, b wire.AcceptInvitation, opts ...Option) (wire.AcceptedInvitation, error) {
	return data[wire.AcceptedInvitation](ctx, m.c, post(b, "/invitations/accept"), opts)
}
