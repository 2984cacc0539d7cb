package dashboard

import (
	"fmt"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// loginPages are the logins that came with a database; the page shows the additional ones too.
func (s *site) loginPages() []web.Page {
	const path = "/databases/{id}" + loginsTab
	return []web.Page{
		web.Get("logins", path, s.showLogins, "listLogins", "listRoles", "listLegacyRoles"),
		web.Post("login.reveal", path+"/{login}/reveal", path, s.revealLogin, "revealLogin").Of(ratelimit.Reveal),
		web.Post("login.rotate", path+"/{login}/rotate", path, s.rotateLogin, "rotateLogin"),
	}
}

func (s *site) showLogins(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.See)
	if err != nil {
		return nil, err
	}
	list, err := s.use.ManagedLogins.List(r.Context(), d)
	if err != nil {
		return nil, err
	}
	t := &web.Table{
		Caption: "Logins that came with the database",
		Columns: []web.Column{{Title: "Login"}, {Title: "For"}, {Title: "Password"}, {Title: ""}},
	}
	for _, l := range list {
		last := web.Cell{}
		if may(d, account.Configure) {
			at := under(d.Record().ID, "logins", string(l.Login))
			if l.Login != database.OwnerLogin {
				last.Forms = append(last.Forms, button("login.reveal", at+"/reveal", "Show the password"))
			}
			rotate := &web.Form{
				Name: "login.rotate", Action: at + "/rotate", Row: string(l.Login), Submit: "Rotate the password", Fold: "Rotate",
				Intro: "The old password stops working at once, and every connection made with it ends.",
			}
			last.Forms = append(last.Forms, rotate.Once(s.once()))
		}
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			web.MonoText(l.Username), web.Words(purpose(l.Login, d.Record().RoleModel)),
			web.Words(fmt.Sprintf("generation %d", l.CredentialGeneration)), last,
		}})
	}
	v := frame(d, loginsTab, "Logins")
	v.Sections = []*web.Section{{ID: "logins", Table: t}}
	more, err := s.roleSections(r, d)
	v.Sections = append(v.Sections, more...)
	return v, err
}

func purpose(l database.Login, m database.RoleModel) string {
	switch {
	case m == database.SingleLogin:
		return "everything"
	case l == database.OwnerLogin:
		return "migrations: owns the tables"
	case l == database.RuntimeLogin:
		return "the application: reads and writes"
	default:
		return "reads"
	}
}

func (s *site) revealLogin(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Configure)
	if err != nil {
		return nil, err
	}
	shown, err := s.use.ManagedLogins.Reveal(r.Context(), d, database.Login(r.Param("login")))
	if err != nil {
		return nil, err
	}
	return passwordView(d, "Password of "+shown.Username, shown.Username, shown.Password), nil
}

// passwordView shows a password once.
func passwordView(d access.Reached, title, username, password string) *web.View {
	v := within(d, loginsTab, title)
	v.Sections = []*web.Section{{
		Codes: append([]web.Code{{Label: "Password", Text: password, Secret: true}}, connections(d.Record(), username, password)...),
		Links: []web.Link{{Text: "Back to the logins", Href: under(d.Record().ID, "logins")}},
	}}
	v.Watch = nil // it would be read again without the password
	return v
}

func (s *site) rotateLogin(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Configure)
	if err != nil {
		return nil, err
	}
	change, err := s.use.ManagedLogins.Rotate(r.Context(), d, database.Login(r.Param("login")), idempotency.Key(r.Once()))
	if err != nil {
		return nil, err
	}
	if change.Password != "" {
		return passwordView(d, "New password of "+change.Username, change.Username, change.Password), nil
	}
	v := within(d, loginsTab, "The password of "+change.Username)
	text := "The password was changed, and can be shown under Logins."
	if change.Open() {
		text = "The change is under way, and goes on in the background."
	}
	v.Sections = []*web.Section{{
		Alert: &web.Alert{Good: true, Text: text}, Links: []web.Link{{Text: "Back to the logins", Href: under(d.Record().ID,
			"logins")}},
	}}
	return v, nil
}
