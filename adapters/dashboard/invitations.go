package dashboard

import (
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/members"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// invitationPages are where the link of an invitation leads.
func (s *site) invitationPages() []web.Page {
	return []web.Page{
		web.Get("invitation", "/invitation/{token}", s.showInvitation).For(web.Anybody),
		web.Post("invitation.accept", "/invitation/{token}", "/invitation/{token}", s.acceptInvitation,
			"acceptInvitation").For(web.Anybody).
			Says("The invitation is accepted."),
	}
}

func (s *site) showInvitation(r *web.Request) (web.Answer, error) {
	form := &web.Form{
		Name: "invitation.accept", Action: "/invitation/" + r.Param("token"), Submit: "Accept",
		Fields: []*web.Field{
			{Name: "name", Label: "Your name", Complete: "name", Max: 100, Optional: true, Help: "Only for a new account."},
		},
	}
	rules, _ := s.use.People.SignOnRules()
	then := "log in with " + rules.Name + " afterwards"
	if !rules.Required {
		then = "choose a password"
		form.Fields = append(form.Fields, &web.Field{
			Name: "password", Label: "Password", Type: "password", Complete: "new-password", Max: 200, Optional: true,
			Help: "Only for a new account: 8 to 200 characters.",
		})
	}
	return &web.View{Title: "Accept the invitation", Outside: true, Sections: []*web.Section{{
		Note:  "Somebody lets you use a database. If you have no account here yet, you get one: " + then + ".",
		Forms: []*web.Form{form},
	}}}, nil
}

func (s *site) acceptInvitation(r *web.Request) (web.Answer, error) {
	if _, err := s.use.Access.AdmitAddress(r.Context(), access.Attempt{
		Class: ratelimit.Accept, Client: r.Client, RequestID: r.ID,
	}); err != nil {
		return nil, err
	}
	a := members.Acceptance{Token: r.Param("token")}
	if name := r.Field("name"); name != "" {
		a.Name = &name
	}
	if password := r.Field("password"); password != "" {
		a.Password = &password
	}
	member, err := s.use.Members.Accept(r.Context(), a)
	if err != nil {
		return nil, err
	}
	return web.Redirect{To: pathOf(member.DatabaseID)}, nil
}
