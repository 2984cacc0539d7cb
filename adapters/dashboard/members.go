package dashboard

import (
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
)

func (s *site) memberPages() []web.Page {
	const path = "/databases/{id}" + membersTab
	return []web.Page{
		web.Get("members", path, s.showMembers, "listMembers", "listInvitations"),
		web.Post("member.add", path, path, s.addMember, "addMember").Says("The person is a member, or invited by mail."),
		web.Post("member.role", path+"/{member}/role", path, s.setMemberRole, "setMemberRole").Says("The role was changed."),
		web.Post("member.remove", path+"/{member}/remove", path, s.removeMember, "removeMember").
			Says("The person is no member any more. Passwords of logins that they know still work: rotate them."),
		web.Post("invitation.resend", path+"/invitations/{invitation}/resend", path, s.resendInvitation, "resendInvitation").
			Says("The invitation was sent again; the old link works no more."),
		web.Post("invitation.revoke", path+"/invitations/{invitation}/revoke", path, s.revokeInvitation, "deleteInvitation").
			Says("The invitation was taken back."),
	}
}

func roleField(value account.Standing) *web.Field {
	return &web.Field{
		Name: "role", Label: "Role", Type: "select", Value: string(value),
		Options: []web.Option{
			{Value: string(account.Viewer), Text: "viewer: sees everything, downloads backups"},
			{Value: string(account.Developer), Text: "developer: starts and deletes backups too"},
			{Value: string(account.Admin), Text: "admin: configures it, with its passwords"},
		},
	}
}

func (s *site) showMembers(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Own)
	if err != nil {
		return nil, err
	}
	people, err := s.use.Members.List(r.Context(), d)
	if err != nil {
		return nil, err
	}
	t := &web.Table{
		Caption: "People who may use the database",
		Columns: []web.Column{{Title: "Person", Sort: "person"}, {Title: "Role", Sort: "role"}, {Title: "Since", Sort: "since"},
			{Title: ""}},
	}
	t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{{Text: people.Owner.Name, Sub: people.Owner.Email}, web.Words("owner"), {},
		{}}})
	for _, m := range people.Members {
		at := under(d.Record().ID, "members", string(m.ID))
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{Text: m.Name, Sub: m.Email}, web.Words(string(m.Role)), web.Time(&m.CreatedAt),
			{Forms: []*web.Form{
				{Name: "member.role", Action: at + "/role", Row: string(m.ID), Submit: "Change the role", Fold: "Role",
					Fields: []*web.Field{roleField(m.Role)}},
				button("member.remove", at+"/remove", "Remove"),
			}},
		}})
	}
	v := frame(d, membersTab, "Members")
	v.Sections = []*web.Section{{ID: "members", Table: t.Arrange(r), Forms: []*web.Form{{
		Name: "member.add", Action: under(d.Record().ID, "members"), Submit: "Add the person", Fold: "Add somebody",
		Intro: "Somebody who is known here becomes a member at once; everybody else is sent an invitation.",
		Fields: []*web.Field{{Name: "email", Label: "E-mail address", Type: "email", Max: 254, Complete: "off"},
			roleField(account.Viewer)},
	}}}}
	if len(people.Invitations) > 0 {
		v.Sections = append(v.Sections, invitationSection(d.Record().ID, people.Invitations))
	}
	return v, nil
}

func invitationSection(db id.DatabaseID, list []member.Invitation) *web.Section {
	t := &web.Table{
		Caption: "Invitations that were not accepted yet",
		Columns: []web.Column{{Title: "Address"}, {Title: "Role"}, {Title: "Status"}, {Title: "Ends"}, {Title: ""}},
	}
	for _, i := range list {
		at := under(db, "members", "invitations", string(i.ID))
		tone := web.Busy
		if i.Status != member.Open {
			tone = web.Neutral
		}
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			web.Words(i.Email), web.Words(string(i.Role)), {Mark: &web.Mark{Text: plain(i.Status), Tone: tone}},
			web.Time(&i.ExpiresAt),
			{Forms: []*web.Form{button("invitation.resend", at+"/resend", "Send again"), button("invitation.revoke", at+"/revoke",
				"Take back")}},
		}})
	}
	return &web.Section{ID: "invitations", Title: "Invitations", Table: t}
}

func (s *site) addMember(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Own)
	if err != nil {
		return nil, err
	}
	_, err = s.use.Members.Add(r.Context(), d, r.Field("email"), account.Standing(r.Field("role")))
	return to(r, membersTab), err
}

func (s *site) setMemberRole(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Own)
	if err != nil {
		return nil, err
	}
	_, err = s.use.Members.SetRole(r.Context(), d, id.MembershipID(r.Param("member")), account.Standing(r.Field("role")))
	return to(r, membersTab), err
}

func (s *site) removeMember(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Own)
	if err != nil {
		return nil, err
	}
	return to(r, membersTab), s.use.Members.Remove(r.Context(), d, id.MembershipID(r.Param("member")))
}

func (s *site) resendInvitation(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Own)
	if err != nil {
		return nil, err
	}
	_, err = s.use.Members.Resend(r.Context(), d, id.InvitationID(r.Param("invitation")))
	return to(r, membersTab), err
}

func (s *site) revokeInvitation(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Own)
	if err != nil {
		return nil, err
	}
	return to(r, membersTab), s.use.Members.Revoke(r.Context(), d, id.InvitationID(r.Param("invitation")))
}
