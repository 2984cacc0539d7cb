package httpapi

import (
	"net/http"

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

func (m memberRoutes) routes() []Route {
	const (
		list    = databasesPath + "/{id}/members"
		one     = list + "/{membershipId}"
		invited = databasesPath + "/{id}/invitations"
		letter  = invited + "/{invitationId}"
	)
	mailing := []fault.Code{
		fault.MemberConflict, fault.DatabaseStateConflict, fault.RateLimited, fault.FeatureNotAvailable,
	}
	rows := []Route{
		{
			Name: "listMembers", Summary: "List the owner, the members and the invitations of a database",
			Method: http.MethodGet, Path: list, Class: ratelimit.Read, Handle: m.list,
			Answers: documented(http.StatusOK, wire.Data[wire.Members]{}),
		},
		{
			Name: "addMember", Summary: "Make a user a member, set the role of a member, or invite somebody by mail",
			Method: http.MethodPost, Path: list, Class: ratelimit.Write, Body: JSON[wire.AddMember](), Handle: m.add,
			Answers:  documented(http.StatusCreated, wire.Data[wire.AddedMember]{}),
			Refusals: mailing,
		},
		{
			Name: "setMemberRole", Summary: "Change the role of a member; passwords of the database's logins stay as they are",
			Method: http.MethodPatch, Path: one, Class: ratelimit.Write, Body: JSON[wire.SetMemberRole](), Handle: m.setRole,
			Answers:  documented(http.StatusOK, wire.Data[wire.Member]{}),
			Refusals: []fault.Code{fault.MemberNotFound},
		},
		{
			Name: "removeMember", Summary: "Remove a member, whose API keys lose the database; passwords of its logins stay as they are",
			Method: http.MethodDelete, Path: one, Class: ratelimit.Write, Handle: m.remove,
			Answers:  documented(http.StatusNoContent, nil),
			Refusals: []fault.Code{fault.MemberNotFound},
		},
		{
			Name: "listInvitations", Summary: "List the invitations to a database that are open or expired",
			Method: http.MethodGet, Path: invited, Class: ratelimit.Read, Handle: m.invitations,
			Answers: documented(http.StatusOK, wire.Data[[]wire.Invitation]{}),
		},
		{
			Name: "resendInvitation", Summary: "Mail an invitation again, with a new token and seven new days",
			Method: http.MethodPost, Path: letter + "/resend", Class: ratelimit.Write, Handle: m.resend,
			Answers:  documented(http.StatusOK, wire.DataWithMessage[wire.Invitation]{}),
			Refusals: append([]fault.Code{fault.InvitationNotFound}, mailing...),
		},
		{
			Name: "deleteInvitation", Summary: "Delete an invitation, whose token is then worth nothing",
			Method: http.MethodDelete, Path: letter, Class: ratelimit.Write, Handle: m.revoke,
			Answers:  documented(http.StatusNoContent, nil),
			Refusals: []fault.Code{fault.InvitationNotFound},
		},
	}
	for i := range rows {
		rows[i].Key, rows[i].Target, rows[i].Action = FullAccount, Database, account.Own
	}
	return append(rows, Route{
		Name: "acceptInvitation", Summary: "Become a member with the token of an invitation; needs no API key",
		Method: http.MethodPost, Path: keyed + "/invitations/accept", Class: ratelimit.Accept, Key: Public, NoStore: true,
		Body: JSON[wire.AcceptInvitation](), Handle: m.accept,
		Answers:  documented(http.StatusOK, wire.DataWithMessage[wire.AcceptedInvitation]{}),
		Refusals: []fault.Code{fault.InvitationNotFound, fault.MemberConflict, fault.ServerBusy, fault.FeatureNotAvailable},
	})
}

func (m memberRoutes) list(r *Request) (Answer, error) {
	people, err := m.use.List(r.Context(), r.database())
	return OK(wire.Data[wire.Members]{Data: viewPeople(people)}), err
}

func (m memberRoutes) add(r *Request) (Answer, error) {
	body := Decoded[wire.AddMember](r)
	added, err := m.use.Add(r.Context(), r.database(), body.Email, body.Role)
	if err != nil {
		return Answer{}, err
	}
	return Created(wire.Data[wire.AddedMember]{Data: viewAdded(added)}), nil
}

func (m memberRoutes) setRole(r *Request) (Answer, error) {
	to := Decoded[wire.SetMemberRole](r).Role
	changed, err := m.use.SetRole(r.Context(), r.database(), id.MembershipID(r.Param("membershipId")), to)
	return OK(wire.Data[wire.Member]{Data: viewMember(changed)}), err
}

func (m memberRoutes) remove(r *Request) (Answer, error) {
	return NoContent(), m.use.Remove(r.Context(), r.database(), id.MembershipID(r.Param("membershipId")))
}

func (m memberRoutes) invitations(r *Request) (Answer, error) {
	list, err := m.use.Invitations(r.Context(), r.database())
	return OK(wire.Data[[]wire.Invitation]{Data: mapped(list, viewInvitation)}), err
}

func (m memberRoutes) resend(r *Request) (Answer, error) {
	again, err := m.use.Resend(r.Context(), r.database(), id.InvitationID(r.Param("invitationId")))
	const message = "The invitation is on its way again; the token of the mail before works no more."
	return OK(wire.DataWithMessage[wire.Invitation]{Message: message, Data: viewInvitation(again)}), err
}

func (m memberRoutes) revoke(r *Request) (Answer, error) {
	return NoContent(), m.use.Revoke(r.Context(), r.database(), id.InvitationID(r.Param("invitationId")))
}

func (m memberRoutes) accept(r *Request) (Answer, error) {
	body := Decoded[wire.AcceptInvitation](r)
	joined, err := m.use.Accept(r.Context(), members.Acceptance{Token: body.Token, Name: body.Name, Password: body.Password})
	view := wire.AcceptedInvitation{
		ID: joined.ID, DatabaseID: joined.DatabaseID, UserID: joined.UserID, Email: joined.Email, Name: joined.Name,
		Role: joined.Role, CreatedAt: instant(joined.CreatedAt),
	}
	return OK(wire.DataWithMessage[wire.AcceptedInvitation]{Message: "You are a member of the database now.", Data: view}), err
}
