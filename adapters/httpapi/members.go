package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/members"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/ratelimit"
)

func viewMember(m member.Member) wire.Member {
	return wire.Member{
		ID: m.ID, UserID: m.UserID, Email: m.Email, Name: m.Name, Role: m.Role, CreatedAt: instant(m.CreatedAt),
	}
}

func viewInvitation(i member.Invitation) wire.Invitation {
	return wire.Invitation{
		ID: i.ID, Email: i.Email, Role: i.Role, Status: i.Status, ExpiresAt: instant(i.ExpiresAt), CreatedAt: instant(i.CreatedAt),
	}
}

func viewPeople(l members.Listing) wire.Members {
	return wire.Members{
		Owner:   wire.Owner{UserID: l.Owner.ID, Email: l.Owner.Email, Name: l.Owner.Name},
		Members: mapped(l.Members, viewMember), Invitations: mapped(l.Invitations, viewInvitation),
	}
}

func viewAdded(a members.Added) wire.AddedMember {
	if m := a.Member; m != nil {
		return wire.AddedMember{
			Kind: wire.KindMember, ID: string(m.ID), UserID: m.UserID, Email: m.Email, Name: m.Name, Role: m.Role,
			CreatedAt: instant(m.CreatedAt),
		}
	}
	i := a.Invitation
	return wire.AddedMember{
		Kind: wire.KindInvitation, ID: string(i.ID), Email: i.Email, Role: i.Role, Status: i.Status,
		ExpiresAt: instant(i.ExpiresAt), CreatedAt: instant(i.CreatedAt),
	}
}

type memberRoutes struct{ use *members.Members }

func (m memberRoutes) routes() []serve.Route {
	const (
		list    = databasesPath + "/{id}/members"
		one     = list + "/{membershipId}"
		invited = databasesPath + "/{id}/invitations"
		letter  = invited + "/{invitationId}"
	)
	mailing := []fault.Code{
		fault.MemberConflict, fault.DatabaseStateConflict, fault.RateLimited, fault.FeatureNotAvailable,
	}
	rows := []serve.Route{
		{
			Name: "listMembers", Summary: "List the owner, the members and the invitations of a database",
			Method: http.MethodGet, Path: list, Class: ratelimit.Read, Work: serve.OK(m.list),
		},
		{
			Name: "addMember", Summary: "Make a user a member, set the role of a member, or invite somebody by mail",
			Method: http.MethodPost, Path: list, Class: ratelimit.Write, Body: serve.JSON[wire.AddMember](), Work: serve.Created(m.add),
			Refusals: mailing,
		},
		{
			Name: "setMemberRole", Summary: "Change the role of a member; passwords of the database's logins stay as they are",
			Method: http.MethodPatch, Path: one, Class: ratelimit.Write, Body: serve.JSON[wire.SetMemberRole](), Work: serve.OK(m.setRole),
			Refusals: []fault.Code{fault.MemberNotFound},
		},
		{
			Name: "removeMember", Summary: "Remove a member, whose API keys lose the database; passwords of its logins stay as they are",
			Method: http.MethodDelete, Path: one, Class: ratelimit.Write, Work: serve.Empty(m.remove),
			Refusals: []fault.Code{fault.MemberNotFound},
		},
		{
			Name: "listInvitations", Summary: "List the invitations to a database that are open or expired",
			Method: http.MethodGet, Path: invited, Class: ratelimit.Read, Work: serve.OK(m.invitations),
		},
		{
			Name: "resendInvitation", Summary: "Mail an invitation again, with a new token and seven new days",
			Method: http.MethodPost, Path: letter + "/resend", Class: ratelimit.Write, Work: serve.OK(m.resend),
			Refusals: append([]fault.Code{fault.InvitationNotFound}, mailing...),
		},
		{
			Name: "deleteInvitation", Summary: "Delete an invitation, whose token is then worth nothing",
			Method: http.MethodDelete, Path: letter, Class: ratelimit.Write, Work: serve.Empty(m.revoke),
			Refusals: []fault.Code{fault.InvitationNotFound},
		},
	}
	for i := range rows {
		rows[i].Key, rows[i].Target, rows[i].Action = serve.FullAccount, Database, account.Own
	}
	return append(rows, serve.Route{
		Name: "acceptInvitation", Summary: "Become a member with the token of an invitation; needs no API key",
		Method: http.MethodPost, Path: keyed + "/invitations/accept", Class: ratelimit.Accept, Key: serve.Public, NoStore: true,
		Body: serve.JSON[wire.AcceptInvitation](), Work: serve.OK(m.accept),
		Refusals: []fault.Code{
			fault.InvitationNotFound, fault.MemberConflict, fault.ServerBusy, fault.FeatureNotAvailable, fault.AccountSuspended,
		},
	})
}

func (m memberRoutes) list(r *serve.Request) (wire.Data[wire.Members], error) {
	people, err := m.use.List(r.Context(), databaseOf(r))
	return wire.Data[wire.Members]{Data: viewPeople(people)}, err
}

func (m memberRoutes) add(r *serve.Request) (out wire.Data[wire.AddedMember], err error) {
	body := serve.Decoded[wire.AddMember](r)
	added, err := m.use.Add(r.Context(), databaseOf(r), body.Email, body.Role)
	if err != nil {
		return out, err
	}
	return wire.Data[wire.AddedMember]{Data: viewAdded(added)}, nil
}

func (m memberRoutes) setRole(r *serve.Request) (wire.Data[wire.Member], error) {
	to := serve.Decoded[wire.SetMemberRole](r).Role
	changed, err := m.use.SetRole(r.Context(), databaseOf(r), id.MembershipID(r.Param("membershipId")), to)
	return wire.Data[wire.Member]{Data: viewMember(changed)}, err
}

func (m memberRoutes) remove(r *serve.Request) error {
	return m.use.Remove(r.Context(), databaseOf(r), id.MembershipID(r.Param("membershipId")))
}

func (m memberRoutes) invitations(r *serve.Request) (wire.Data[[]wire.Invitation], error) {
	list, err := m.use.Invitations(r.Context(), databaseOf(r))
	return wire.Data[[]wire.Invitation]{Data: mapped(list, viewInvitation)}, err
}

func (m memberRoutes) resend(r *serve.Request) (wire.DataWithMessage[wire.Invitation], error) {
	again, err := m.use.Resend(r.Context(), databaseOf(r), id.InvitationID(r.Param("invitationId")))
	const message = "The invitation is on its way again; the token of the mail before works no more."
	return wire.DataWithMessage[wire.Invitation]{Message: message, Data: viewInvitation(again)}, err
}

func (m memberRoutes) revoke(r *serve.Request) error {
	return m.use.Revoke(r.Context(), databaseOf(r), id.InvitationID(r.Param("invitationId")))
}

func (m memberRoutes) accept(r *serve.Request) (wire.DataWithMessage[wire.AcceptedInvitation], error) {
	body := serve.Decoded[wire.AcceptInvitation](r)
	joined, err := m.use.Accept(r.Context(), members.Acceptance{Token: body.Token, Name: body.Name, Password: body.Password})
	view := wire.AcceptedInvitation{
		ID: joined.ID, DatabaseID: joined.DatabaseID, UserID: joined.UserID, Email: joined.Email, Name: joined.Name,
		Role: joined.Role, CreatedAt: instant(joined.CreatedAt),
	}
	return wire.DataWithMessage[wire.AcceptedInvitation]{Message: "You are a member of the database now.", Data: view}, err
}
