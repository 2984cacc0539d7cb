package dashboard

import (
	"fmt"
	"strings"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
)

const securityPath = "/security"

// securityPages are what somebody logs in with, and where.
func (s *site) securityPages() []web.Page {
	post := func(name, path string, do func(*web.Request) (web.Answer, error)) web.Page {
		return web.Post(name, securityPath+path, securityPath, do)
	}
	return []web.Page{
		web.Get("security", securityPath, s.showSecurity),
		post("security.password", "/password", s.changePassword).Says("The password was changed, and all other sessions have ended."),
		post("security.factor.begin", "/factor/begin", s.beginFactor),
		web.Get("security.factor", securityPath+"/factor", s.showNewFactor),
		web.Post("security.factor.confirm", securityPath+"/factor", securityPath+"/factor", s.confirmFactor),
		post("security.factor.remove", "/factor/remove", s.removeFactor).Says("The authenticator app was removed."),
		post("security.recovery", "/recovery", s.renewRecovery),
		post("security.session.end", "/sessions/end", s.endSession).Says("The session has ended."),
		post("security.sessions.end", "/sessions/end-others", s.endOthers).Says("All other sessions have ended."),
	}
}

func (s *site) showSecurity(r *web.Request) (web.Answer, error) {
	has, err := s.use.People.Security(r.Context(), r.Caller)
	if err != nil {
		return nil, err
	}
	sessions, err := s.use.People.Sessions(r.Context(), r.Caller)
	if err != nil {
		return nil, err
	}
	v := &web.View{Title: "Security", Lead: "How you log in as " + r.Caller.User.Email + ", and where you are logged in."}
	rules, issuer := s.use.People.SignOnRules()
	if issuer {
		v.Sections = append(v.Sections, signOnSection(rules.Name, has))
	}
	if !rules.Required || r.Caller.Operator {
		section, err := s.passkeySection(r)
		if err != nil {
			return nil, err
		}
		v.Sections = append(v.Sections, section)
	}
	v.Sections = append(v.Sections, factorSection(has, s.beforeCode()))
	if !rules.Required {
		v.Sections = append(v.Sections, passwordSection(has.HasPassword))
	}
	v.Sections = append(v.Sections, sessionSection(r, sessions))
	return v, nil
}

// beforeCode is what a log-in asks for a code after.
func (s *site) beforeCode() string {
	rules, issuer := s.use.People.SignOnRules()
	switch asks := issuer && !rules.BothFactors; {
	case asks && rules.Required:
		return rules.Name
	case asks:
		return "the password or " + rules.Name
	case rules.Required:
		return "a link of the operator"
	default:
		return "the password"
	}
}

func passwordSection(has bool) *web.Section {
	note := "You have none: you log in without one."
	if has {
		note = "Changing it ends all other sessions."
	}
	return &web.Section{Title: "Password", Note: note, Forms: []*web.Form{{
		Name: "security.password", Action: securityPath + "/password", Submit: "Change the password", Fold: "Change the password",
		Fields: []*web.Field{newPassword()},
	}}}
}

func factorSection(has people.Security, before string) *web.Section {
	section := &web.Section{
		Title: "Authenticator app", Note: "A second factor: after " + before + ", the log-in asks for a code of an app on your phone.",
	}
	if !has.HasFactor {
		section.Facts = []web.Fact{{Name: "Status", Cell: web.Cell{Mark: &web.Mark{Text: "not set up", Tone: web.Warning}}}}
		section.Forms = []*web.Form{button("security.factor.begin", securityPath+"/factor/begin", "Set up an app")}
		return section
	}
	tone := web.Good
	if has.Recovery < 3 {
		tone = web.Warning
	}
	section.Facts = []web.Fact{
		{Name: "Status", Cell: web.Cell{Mark: &web.Mark{Text: "on", Tone: web.Good}}},
		{Name: "Recovery codes left", Cell: web.Cell{Mark: &web.Mark{Text: fmt.Sprint(has.Recovery), Tone: tone}}},
	}
	section.Forms = []*web.Form{
		{
			Name: "security.recovery", Action: securityPath + "/recovery", Submit: "Make new codes", Fold: "Make new recovery codes",
			Intro: "Those of before work no more.",
		},
		{
			Name: "security.factor.remove", Action: securityPath + "/factor/remove", Submit: "Remove the app", Danger: true,
			Fold: "Remove the app", Intro: "Then " + before + " alone is enough to log in.",
		},
	}
	return section
}

func sessionSection(r *web.Request, sessions []person.Session) *web.Section {
	t := &web.Table{
		Caption: "Where you are logged in",
		Columns: []web.Column{{Title: "Browser"}, {Title: "Address at log-in"}, {Title: "Last used"}, {Title: "Since"}, {Title: ""}},
	}
	for _, session := range sessions {
		last := web.Cell{Forms: []*web.Form{button("security.session.end", securityPath+"/sessions/end", "End",
			web.Pair{Name: "session", Value: string(session.ID)})}}
		if session.ID == r.Caller.Session.ID {
			last = web.Cell{Mark: &web.Mark{Text: "this one", Tone: web.Good}}
		}
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			web.Words(browser(session.Agent)), web.MonoText(session.Client), web.Time(&session.UsedAt), web.Time(&session.CreatedAt), last,
		}})
	}
	section := &web.Section{Title: "Sessions", Table: t}
	if len(sessions) > 1 {
		section.Forms = []*web.Form{button("security.sessions.end", securityPath+"/sessions/end-others", "End all others")}
	}
	return section
}

// browser shortens what a browser says of itself to its name and system.
func browser(agent string) string {
	name, system := "Unknown browser", ""
	for _, known := range []struct{ part, name string }{
		{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
	} {
		if strings.Contains(agent, known.part) {
			name = known.name
			break
		}
	}
	for _, known := range []struct{ part, name string }{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"Linux",
			"Linux"},
	} {
		if strings.Contains(agent, known.part) {
			system = " on " + known.name
			break
		}
	}
	return name + system
}

func (s *site) changePassword(r *web.Request) (web.Answer, error) {
	device, err := s.use.People.ChangePassword(r.Context(), r.Caller, r.Field("password"), r.Device())
	if err == nil {
		r.SetDevice(device)
	}
	return web.Redirect{To: securityPath}, err
}

// beginFactor shows the secret in its own answer: it is not read again.
func (s *site) beginFactor(r *web.Request) (web.Answer, error) {
	secret, err := s.use.People.BeginFactor(r.Context(), r.Caller)
	if err != nil {
		return nil, err
	}
	v := factorView()
	v.Sections[0].Codes = []web.Code{
		{Label: "Secret, to type into the app", Text: secret.Text(), Secret: true},
		{Label: "The same as an address, for a password manager", Text: secret.Address(s.Product, r.Caller.User.Email), Secret: true},
	}
	return v, nil
}

func factorView() *web.View {
	return &web.View{
		Title: "Set up an authenticator app", Trail: []web.Link{{Text: "Security", Href: securityPath}},
		Sections: []*web.Section{{
			Note: "Add the secret to the app, and type the code that it shows.",
			Forms: []*web.Form{{
				Name: "security.factor.confirm", Action: securityPath + "/factor", Submit: "Confirm",
				Fields: []*web.Field{{Name: "code", Label: "Code of the app", Complete: "one-time-code", Max: 10}},
			}},
		}},
	}
}

// showNewFactor is the page after a wrong code: the secret is in the app by then.
func (s *site) showNewFactor(*web.Request) (web.Answer, error) { return factorView(), nil }

func (s *site) confirmFactor(r *web.Request) (web.Answer, error) {
	codes, err := s.use.People.ConfirmFactor(r.Context(), r.Caller, r.Field("code"))
	return recoveryView("The authenticator app is set up", codes), err
}

func (s *site) renewRecovery(r *web.Request) (web.Answer, error) {
	codes, err := s.use.People.RenewRecovery(r.Context(), r.Caller)
	return recoveryView("New recovery codes", codes), err
}

func recoveryView(title string, codes []string) *web.View {
	return &web.View{
		Title: title, Trail: []web.Link{{Text: "Security", Href: securityPath}},
		Sections: []*web.Section{{
			Note:  "Each of these codes takes the place of the app once. Keep them where you find them without your phone.",
			Codes: []web.Code{{Label: "Recovery codes", Text: strings.Join(codes, "\n"), Secret: true}},
			Links: []web.Link{{Text: "I have kept them", Href: securityPath}},
		}},
	}
}

func (s *site) removeFactor(r *web.Request) (web.Answer, error) {
	return web.Redirect{To: securityPath}, s.use.People.RemoveFactor(r.Context(), r.Caller)
}

func (s *site) endSession(r *web.Request) (web.Answer, error) {
	session, err := identifier[id.SessionID](r, "session")
	if err != nil {
		return nil, err
	}
	return web.Redirect{To: securityPath}, s.use.People.EndSession(r.Context(), r.Caller, session)
}

func (s *site) endOthers(r *web.Request) (web.Answer, error) {
	return web.Redirect{To: securityPath}, s.use.People.EndOthers(r.Context(), r.Caller)
}
