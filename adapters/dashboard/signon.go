package dashboard

import (
	"net/url"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/person"
)

const (
	signOnPath    = "/sign-on"
	backPath      = signOnPath + "/back" // which the issuer knows
	proofPath     = web.ProvePath + "/sign-on"
	proofBackPath = proofPath + "/back"
)

// signOnPages lead to the issuer of the installation, and back.
func (s *site) signOnPages() []web.Page {
	return []web.Page{
		web.Get("sign-on", signOnPath, s.beginSignOn).For(web.Anybody).Or(web.LogInPath),
		web.Get("sign-on.back", backPath, s.logInBySignOn).For(web.Anybody).Or(web.LogInPath),
		web.Post("prove.sign-on", proofPath, web.ProvePath, s.beginSignOnProof),
		web.Get("prove.sign-on.back", proofBackPath, s.proveBySignOn).Or(web.ProvePath),
	}
}

// What a browser keeps while its person is at the issuer, as a query.
const (
	underWay  = "sign-on"
	tokenKept = "token"
	proofKept = "proof" // it is no log-in
)

func (s *site) beginSignOn(r *web.Request) (web.Answer, error) {
	on, err := s.use.People.BeginSignOn(r.Context(), client(r))
	return s.away(r, on, url.Values{}, err)
}

// away sends a browser to the issuer.
func (s *site) away(r *web.Request, on people.SigningOn, keep url.Values, err error) (web.Answer, error) {
	if err != nil {
		return nil, err
	}
	keep.Set(tokenKept, on.Token)
	keep.Set(web.NextParameter, r.Next())
	r.Keep(underWay, keep.Encode(), person.SignOnTime)
	rules, _ := s.use.People.SignOnRules()
	return web.Away{To: on.URL, Name: rules.Name}, nil
}

func kept(r *web.Request) url.Values {
	v, _ := url.ParseQuery(r.Kept(underWay)) // what cannot be read is no token
	return v
}

// returned is what a browser comes back with. It keeps nothing any more.
func returned(r *web.Request) people.Returned {
	r.Keep(underWay, "", 0)
	return people.Returned{
		Token: kept(r).Get(tokenKept), State: r.Query("state"), Code: r.Query("code"), Issuer: r.Query("iss"),
		Refusal: r.Query("error"),
	}
}

func (s *site) logInBySignOn(r *web.Request) (web.Answer, error) {
	next := kept(r).Get(web.NextParameter)
	if kept(r).Has(proofKept) { // for which the person has to be known
		query := url.Values{web.NextParameter: {next}}
		for _, name := range []string{"state", "code", "iss", "error"} {
			query.Set(name, r.Query(name))
		}
		return web.Redirect{To: proofBackPath + "?" + query.Encode()}, nil
	}
	in, err := s.use.People.LogInBySignOn(r.Context(), returned(r), client(r))
	return entered(r, in, web.Local(next), err)
}

func (s *site) beginSignOnProof(r *web.Request) (web.Answer, error) {
	on, err := s.use.People.BeginSignOnProof(r.Context(), r.Caller, r.Field("code"))
	return s.away(r, on, url.Values{proofKept: {"yes"}}, unproven(err))
}

func (s *site) proveBySignOn(r *web.Request) (web.Answer, error) {
	in, err := s.use.People.ProveBySignOn(r.Context(), r.Caller, returned(r))
	return proved(r, in, err)
}

// signOnSection says since when somebody is linked at the issuer.
func signOnSection(name string, has people.Security) *web.Section {
	if has.SignsOn == nil {
		return &web.Section{
			Title: "Sign-on", Note: "Once you have logged in with " + name + ", it says who you are.",
			Facts: []web.Fact{{Name: name, Cell: web.Cell{Mark: &web.Mark{Text: "not linked", Tone: web.Neutral}}}},
			Links: []web.Link{{Text: "Log in with " + name, Href: web.WithNext(signOnPath, securityPath)}},
		}
	}
	return &web.Section{
		Title: "Sign-on", Note: "When you log in with " + name + ", it says who you are.",
		Facts: []web.Fact{
			{Name: name, Cell: web.Cell{Mark: &web.Mark{Text: "linked", Tone: web.Good}}}, {Name: "Since", Cell: web.Time(has.SignsOn)},
		},
	}
}
