package dashboard

import (
	"encoding/json"
	"strings"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/ports"
)

// entrancePages are how people come in and go: nobody needs to be logged in.
func (s *site) entrancePages() []web.Page {
	return []web.Page{
		web.Get("login", web.LogInPath, s.showLogIn).For(web.Anybody),
		web.Post("login.password", web.LogInPath, web.LogInPath, s.logIn).For(web.Anybody),
		web.Post("login.passkey.begin", "/login/passkey/begin", web.LogInPath, s.beginPasskeyLogIn).For(web.Anybody),
		web.Post("login.passkey", "/login/passkey", web.LogInPath, s.logInByPasskey).For(web.Anybody),
		web.Get("login.factor", "/login/code", s.showFactor).For(web.Anybody),
		web.Post("login.factor.give", "/login/code", "/login/code", s.giveFactor).For(web.Anybody),
		web.Post("logout", "/logout", web.LogInPath, s.logOut).For(web.Anybody),
		web.Get("forgotten", "/forgotten", s.showForgotten).For(web.Anybody),
		web.Post("forgotten.ask", "/forgotten", "/forgotten", s.askReset).For(web.Anybody),
		web.Get("reset", "/reset/{token}", s.showReset).For(web.Anybody),
		web.Post("reset.choose", "/reset/{token}",
			"/reset/{token}", s.reset).For(web.Anybody).Says("The password was changed: log in with it."),
		web.Get("link", linkPath+"{token}", s.showLink).For(web.Anybody),
		web.Post("link.login", linkPath+"{token}", linkPath+"{token}", s.logInByLink).For(web.Anybody),
		web.Get("prove", web.ProvePath, s.showProof).Open(),
		web.Post("prove.password", web.ProvePath, web.ProvePath, s.prove).Open(),
		web.Post("prove.passkey.begin", "/prove/passkey/begin", web.ProvePath, s.beginPasskeyProof).Open(),
		web.Post("prove.passkey", "/prove/passkey", web.ProvePath, s.proveByPasskey).Open(),
	}
}

func next(r *web.Request) []web.Pair {
	to := r.Next()
	if to == "/" {
		return nil
	}
	return []web.Pair{{Name: web.NextParameter, Value: to}}
}

func emailField(focus bool) *web.Field {
	return &web.Field{Name: "email", Label: "E-mail address", Type: "email", Complete: "username webauthn", Max: 254, Focus: focus}
}

func passwordField(label, complete string) *web.Field {
	return &web.Field{Name: "password", Label: label, Type: "password", Complete: complete, Max: 200}
}

func codeField() *web.Field {
	return &web.Field{
		Name: "code", Label: "Code", Complete: "one-time-code", Max: 40, Focus: true,
		Help: "Of the authenticator app, or a recovery code.",
	}
}

func (s *site) showLogIn(r *web.Request) (web.Answer, error) {
	v := &web.View{Title: "Log in", Outside: true}
	rules, has := s.use.People.SignOnRules()
	if !rules.Required {
		v.Sections = append(v.Sections, &web.Section{Forms: []*web.Form{{
			Name: "login.password", Action: web.LogInPath, Submit: "Log in", Hidden: next(r),
			Fields: []*web.Field{emailField(true), passwordField("Password", "current-password")},
		}}})
	}
	if !rules.Required {
		v.Sections = append(v.Sections, &web.Section{Forms: []*web.Form{
			passkeyForm("login.passkey", "/login/passkey", "Log in with a passkey", next(r)),
		}})
	}
	if has {
		v.Sections = append(v.Sections, &web.Section{
			Main: &web.Link{Text: "Log in with " + rules.Name, Href: web.WithNext(signOnPath, r.Next())},
		})
	}
	if s.Mails && !rules.Required {
		v.Sections = append(v.Sections, &web.Section{Links: []web.Link{{Text: "Forgot your password?", Href: "/forgotten"}}})
	}
	return v, nil
}

// passkeyForm is sent after a device has answered what begin asks.
func passkeyForm(name, action, submit string, hidden []web.Pair, fields ...*web.Field) *web.Form {
	return &web.Form{
		Name: name, Action: action, Submit: submit, Passkey: "get", Begin: action + "/begin", Fields: fields,
		Hidden: append([]web.Pair{{Name: "challenge"}, {Name: "response"}}, hidden...),
	}
}

func (s *site) logIn(r *web.Request) (web.Answer, error) {
	in, err := s.use.People.LogIn(r.Context(), people.Credentials{
		Email: r.Field("email"), Password: r.Field("password"),
	}, client(r))
	return entered(r, in, r.Next(), err)
}

// entered gives the browser a session, and leads on.
func entered(r *web.Request, in people.Entered, to string, err error) (web.Answer, error) {
	if err != nil {
		return nil, err
	}
	r.SetToken(in.Token)
	r.SetDevice(in.Device)
	if in.Session.Status == person.AwaitsFactor {
		return web.Redirect{To: web.WithNext("/login/code", to)}, nil
	}
	return web.Redirect{To: to}, nil
}

func (s *site) beginPasskeyLogIn(r *web.Request) (web.Answer, error) {
	asked, err := s.use.People.BeginPasskeyLogIn(r.Context(), client(r))
	return ask(asked, err)
}

// ask is what a script has a device sign. A refusal is told to the script as well.
func ask(asked people.Asked, err error) (web.Answer, error) {
	if fault.Has(err, fault.LoginRequired) {
		return web.Data(`{"to": "` + web.WithNext(web.ProvePath, securityPath) + `"}`), nil
	}
	if err != nil {
		shown, failed := ports.Shown(err)
		if failed {
			return nil, err
		}
		text, err := json.Marshal(map[string]string{"error": shown.Message})
		return web.Data(text), err
	}
	text, err := json.Marshal(map[string]any{"options": json.RawMessage(asked.Options), "token": asked.Token})
	return web.Data(text), err
}

func (s *site) logInByPasskey(r *web.Request) (web.Answer, error) {
	in, err := s.use.People.LogInByPasskey(r.Context(), r.Field("challenge"), []byte(r.Field("response")), client(r))
	return entered(r, in, r.Next(), err)
}

func (s *site) showFactor(r *web.Request) (web.Answer, error) {
	return &web.View{Title: "Second factor", Outside: true, Sections: []*web.Section{{
		Forms: []*web.Form{{
			Name: "login.factor.give", Action: "/login/code", Submit: "Continue", Fields: []*web.Field{codeField()}, Hidden: next(r),
		}},
		Links: []web.Link{{Text: "Log in as somebody else", Href: web.LogInPath}},
	}}}, nil
}

func (s *site) giveFactor(r *web.Request) (web.Answer, error) {
	in, err := s.use.People.GiveFactor(r.Context(), r.Token(), r.Field("code"), client(r))
	return entered(r, in, r.Next(), err)
}

func (s *site) logOut(r *web.Request) (web.Answer, error) {
	if err := s.use.People.LogOut(r.Context(), r.Token()); err != nil {
		return nil, err
	}
	r.Forget()
	return web.Redirect{To: web.LogInPath}, nil
}

func (s *site) showForgotten(*web.Request) (web.Answer, error) {
	return &web.View{Title: "Forgot your password?", Outside: true, Sections: []*web.Section{{
		Note: "You get a mail with a link, with which you choose another password. A second factor stays.",
		Forms: []*web.Form{{Name: "forgotten.ask", Action: "/forgotten", Submit: "Send the mail",
			Fields: []*web.Field{emailField(true)}}},
		Links: []web.Link{{Text: "Back to the log-in", Href: web.LogInPath}},
	}}}, nil
}

func (s *site) askReset(r *web.Request) (web.Answer, error) {
	if err := s.use.People.AskReset(r.Context(), r.Field("email"), client(r)); err != nil {
		return nil, err
	}
	return &web.View{Title: "Look into your mailbox", Outside: true, Sections: []*web.Section{{
		Alert: &web.Alert{Good: true, Text: "If the address is known here, a mail is on its way. Its link works for 30 minutes, or a " +
			"week for who has no password yet."},
		Links: []web.Link{{Text: "Back to the log-in", Href: web.LogInPath}},
	}}}, nil
}

func (s *site) showReset(r *web.Request) (web.Answer, error) {
	if rules, _ := s.use.People.SignOnRules(); rules.Required { // a link of the operator's logs in, then
		return web.Redirect{To: linkPath + r.Param("token")}, nil
	}
	return &web.View{Title: "Choose a password", Outside: true, Sections: []*web.Section{{
		Note: "All sessions of yours end with it.",
		Forms: []*web.Form{{
			Name: "reset.choose", Action: "/reset/" + r.Param("token"), Submit: "Choose the password",
			Fields: []*web.Field{newPassword()},
		}},
	}}}, nil
}

func newPassword() *web.Field {
	f := passwordField("New password", "new-password")
	f.Help = "8 to 200 characters. Length counts more than anything else."
	return f
}

func (s *site) reset(r *web.Request) (web.Answer, error) {
	device, err := s.use.People.Reset(r.Context(), r.Param("token"), r.Field("password"), client(r))
	if err != nil {
		return nil, err
	}
	r.SetToken("")
	r.SetDevice(device)
	return web.Redirect{To: web.LogInPath}, nil
}

// linkPath is where a link of the operator's leads. Whatever looks into mails follows links, but presses no button.
const linkPath = "/link/"

func (s *site) showLink(r *web.Request) (web.Answer, error) {
	return &web.View{Title: "Log in by a link", Outside: true, Sections: []*web.Section{{
		Note: "The operator of the service has made it for you. It works once.",
		Forms: []*web.Form{{
			Name: "link.login", Action: linkPath + r.Param("token"), Submit: "Log in",
		}},
	}}}, nil
}

func (s *site) logInByLink(r *web.Request) (web.Answer, error) {
	in, err := s.use.People.LogInByLink(r.Context(), r.Param("token"), client(r))
	return entered(r, in, r.Next(), err)
}

func (s *site) showProof(r *web.Request) (web.Answer, error) {
	rules, _ := s.use.People.SignOnRules()
	has, err := s.use.People.Security(r.Context(), r.Caller)
	if err != nil {
		return nil, err
	}
	v := &web.View{
		Title: "Prove that it is you",
		Lead:  "What you are about to do needs a log-in of the last ten minutes.",
	}
	if lead := leadOfOperator(r); lead != "" {
		v.Lead = lead
		v.Sections = []*web.Section{{Forms: []*web.Form{
			passkeyForm("prove.passkey", "/prove/passkey", "Use a passkey", next(r)),
		}}}
		return v, nil
	}
	if has.HasPassword && !rules.Required {
		form := &web.Form{
			Name: "prove.password", Action: web.ProvePath, Submit: "Continue", Hidden: next(r),
			Fields: []*web.Field{passwordField("Password", "current-password")},
		}
		form.Fields[0].Focus = true
		if has.HasFactor {
			form.Fields = append(form.Fields, codeField())
			form.Fields[1].Focus = false
		}
		v.Sections = append(v.Sections, &web.Section{Forms: []*web.Form{form}})
	}
	if !rules.Required {
		v.Sections = append(v.Sections, &web.Section{Forms: []*web.Form{
			passkeyForm("prove.passkey", "/prove/passkey", "Use a passkey", next(r)),
		}})
	}
	if has.SignsOn != nil {
		form := &web.Form{Name: "prove.sign-on", Action: proofPath, Submit: "Log in again with " + rules.Name, Hidden: next(r)}
		if has.HasFactor && !rules.BothFactors {
			code := codeField()
			code.Focus = len(v.Sections) == 0
			form.Fields = []*web.Field{code}
		}
		v.Sections = append(v.Sections, &web.Section{Forms: []*web.Form{form}})
	}
	if len(v.Sections) == 0 {
		v.Sections = []*web.Section{{Alert: &web.Alert{Text: "You have nothing to prove it with: log in again."}}}
	}
	return v, nil
}

// leadOfOperator says why an operator has to use a passkey for what comes next; empty where another proof will do.
func leadOfOperator(r *web.Request) string {
	switch {
	case !r.Caller.Operator:
		return ""
	case r.Next() == consolePath || strings.HasPrefix(r.Next(), consolePath+"/"):
		return "The operator's console needs a passkey, and to change something one that was used in the last ten minutes."
	case r.Next() == securityPath && r.Caller.HasPasskey:
		return "An operator needs a passkey for this, used in the last ten minutes."
	}
	return ""
}

func (s *site) prove(r *web.Request) (web.Answer, error) {
	in, err := s.use.People.ProveAgain(r.Context(), r.Caller, people.Proof{
		Password: r.Field("password"), Code: r.Field("code"),
	})
	return proved(r, in, err)
}

func (s *site) beginPasskeyProof(r *web.Request) (web.Answer, error) {
	asked, err := s.use.People.BeginPasskeyProof(r.Context(), r.Caller)
	return ask(asked, err)
}

func (s *site) proveByPasskey(r *web.Request) (web.Answer, error) {
	in, err := s.use.People.ProveByPasskey(r.Context(), r.Caller, r.Field("challenge"), []byte(r.Field("response")))
	return proved(r, in, err)
}

// proved gives the browser the session's new token, and leads on.
func proved(r *web.Request, in people.Entered, err error) (web.Answer, error) {
	if err != nil {
		return nil, unproven(err)
	}
	r.SetToken(in.Token)
	return web.Redirect{To: r.Next()}, nil
}

// unproven is the error of a proof. One that is wrong is not the end of a session.
func unproven(err error) error {
	if fault.Has(err, fault.Unauthorized) && err.Error() != person.ErrNoSession().Error() {
		return fault.Recode(err, fault.Forbidden)
	}
	return err
}
