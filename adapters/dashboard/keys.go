package dashboard

import (
	"strings"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/network"
	"github.com/pgherd/pgherd/ports"
)

const keysPath = "/keys"

func (s *site) keyPages() []web.Page {
	return []web.Page{
		web.Get("keys", keysPath, s.showKeys),
		web.Post("key.create", keysPath, keysPath, s.createKey),
		web.Get("key", keysPath+"/{key}", s.showKey),
		web.Post("key.replace", keysPath+"/{key}/replace", keysPath+"/{key}", s.replaceKey),
		web.Post("key.bind", keysPath+"/{key}/bind", keysPath+"/{key}", s.bindKey).Says("The key was changed."),
		web.Post("key.revoke", keysPath+"/{key}/revoke", keysPath+"/{key}", s.revokeKey).Says("The key works no more."),
	}
}

// upgrade is what somebody sees whose plan has no API; nil for everybody else.
func upgrade(r *web.Request) *web.Section {
	if r.Caller.Account.Plan.AllowsAPI() {
		return nil
	}
	return &web.Section{
		Title: "API access needs another plan",
		Note: "Your account has the plan " + string(r.Caller.Account.Plan) + ". With Pro or Business you make keys here for the API, " +
			"the command-line client and CI. Ask the people who run this service to change the plan; your databases stay as they are.",
		Links: []web.Link{{Text: "Your plan and its limits", Href: accountPath}},
	}
}

func (s *site) showKeys(r *web.Request) (web.Answer, error) {
	list, err := s.keysOf(r)
	if err != nil {
		return nil, err
	}
	v := &web.View{Title: "API keys", Lead: "With a key, programs act for your account: the API, svc, Terraform."}
	if prompt := upgrade(r); prompt != nil {
		v.Sections = append(v.Sections, prompt)
		if len(list) == 0 {
			return v, nil
		}
	}
	t := &web.Table{
		Caption: "Keys of the account",
		Columns: []web.Column{
			{Title: "Name", Sort: "name"}, {Title: "Status", Sort: "status"}, {Title: "Reaches", Sort: "reaches"},
			{Title: "Last used", Sort: "used"},
			{Title: "Ends", Sort: "ends"}, {Title: "Made", Sort: "made"},
		},
		Empty: &web.Empty{Text: "No key yet. With one, on a terminal:", Command: "svc login"},
	}
	for _, k := range list {
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{Text: k.What.Label, Href: keysPath + "/" + string(k.What.ID), Sub: k.What.Prefix()}, {Mark: keyMark(r, k.What)},
			web.Words(scopeWords(k.What.Scope)), web.Time(k.What.LastUsedAt), web.Time(k.What.ExpiresAt), web.Time(&k.What.CreatedAt),
		}})
	}
	section := &web.Section{ID: "keys", Table: t.Arrange(r)}
	if r.Caller.Account.Plan.AllowsAPI() {
		form, err := s.newKeyForm(r)
		if err != nil {
			return nil, err
		}
		section.Forms = []*web.Form{form}
	}
	v.Sections = append(v.Sections, section)
	return v, nil
}

// keysOf are the keys of the account but those of CI.
func (s *site) keysOf(r *web.Request) (list []base.By[account.Key], err error) {
	desk, err := s.use.Keys.Reader(r.Caller)
	if err != nil {
		return nil, err
	}
	all, err := desk.Keys(r.Context(), r.Caller.Account.ID)
	for _, k := range all {
		if k.What.Kind == account.AccountKey {
			list = append(list, k)
		}
	}
	return list, err
}

func keyMark(r *web.Request, k account.Key) *web.Mark {
	switch {
	case k.RevokedAt != nil:
		return &web.Mark{Text: "revoked", Tone: web.Neutral}
	case k.Expired(r.Now):
		return &web.Mark{Text: "expired", Tone: web.Warning}
	default:
		return &web.Mark{Text: "works", Tone: web.Good}
	}
}

func scopeWords(s account.Scope) string {
	if s == account.FullAccount {
		return "the whole account"
	}
	return "chosen databases"
}

func boundFields() []*web.Field {
	return []*web.Field{
		{Name: "expires", Label: "Ends", Max: 40, Optional: true, Placeholder: "90d",
			Help: "A time from now such as 12h or 90d, or a time such as 2027-03-01T00:00:00Z. Empty: never."},
		{Name: "networks", Label: "Only from these networks", Type: "textarea", Optional: true,
			Help: "One on each line. Empty: from everywhere."},
	}
}

// mostChoices is how many databases a form offers to choose of.
const mostChoices = 200

func (s *site) newKeyForm(r *web.Request) (*web.Form, error) {
	list, _, err := s.use.Databases.List(r.Context(), r.Caller, ports.Page{Limit: mostChoices})
	if err != nil {
		return nil, err
	}
	form := &web.Form{
		Name: "key.create", Action: keysPath, Submit: "Make the key", Fold: "New key",
		Fields: []*web.Field{
			{Name: "label", Label: "Name", Max: 64, Placeholder: "deploy"},
			{Name: "scope", Label: "Reaches", Type: "select", Options: []web.Option{
				{Value: string(account.FullAccount), Text: "the whole account"},
				{Value: string(account.SelectedDatabases), Text: "only the databases chosen below"},
			}},
		},
	}
	var choices []web.Option
	for _, d := range list {
		choices = append(choices, web.Option{Value: string(d.ID), Text: d.DisplayName})
	}
	if len(choices) > 0 {
		form.Fields = append(form.Fields, &web.Field{Name: "database", Label: "Databases", Type: "checks", Options: choices,
			Optional: true})
	}
	form.Fields = append(form.Fields, boundFields()...)
	return form, nil
}

// bounds reads when a key ends, and where it may be used from.
func bounds(r *web.Request) (b keys.Bounds, err error) {
	expires, err := account.ParseExpiry(orNever(r.Field("expires")))
	if err != nil {
		return b, err
	}
	from := lines(r.Field("networks"))
	if len(from) == 0 {
		from = []string{"any"}
	}
	networks, err := network.ParseList("networks", from)
	return keys.Bounds{Expires: &expires, Networks: &networks}, err
}

func orNever(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return "never"
	}
	return text
}

func (s *site) createKey(r *web.Request) (web.Answer, error) {
	desk, err := s.use.Keys.Desk(r.Caller)
	if err != nil {
		return nil, err
	}
	limits, err := bounds(r)
	if err != nil {
		return nil, err
	}
	n := keys.NewKey{
		AccountID: r.Caller.Account.ID, Label: r.Field("label"), Scope: account.Scope(r.Field("scope")), Bounds: limits,
	}
	if n.Scope == account.SelectedDatabases {
		for _, db := range r.Fields("database") {
			n.Databases = append(n.Databases, id.DatabaseID(db))
		}
	}
	key, text, err := desk.CreateKey(r.Context(), n)
	if err != nil {
		return nil, err
	}
	return keyView(key.Label, keysPath, text), nil
}

// keyView shows the text of a key once.
func keyView(label, back, text string) *web.View {
	return &web.View{Title: "The key " + label, Trail: []web.Link{{Text: "API keys", Href: keysPath}}, Sections: []*web.Section{{
		Note: "The key is shown this once. Whoever has it acts for your account.",
		Codes: []web.Code{{Label: "Key", Text: text, Secret: true},
			{Label: "For svc and scripts", Text: "export SVC_API_KEY=" + text, Secret: true}},
		Links: []web.Link{{Text: "I have kept it", Href: back}},
	}}}
}

// keyOf is the key of a page.
func (s *site) keyOf(r *web.Request) (account.Key, error) {
	list, err := s.keysOf(r)
	if err != nil {
		return account.Key{}, err
	}
	for _, k := range list {
		if string(k.What.ID) == r.Param("key") {
			return k.What, nil
		}
	}
	return account.Key{}, web.ErrNothing()
}

func (s *site) showKey(r *web.Request) (web.Answer, error) {
	k, err := s.keyOf(r)
	if err != nil {
		return nil, err
	}
	networks := "everywhere"
	if len(k.Networks) > 0 {
		networks = strings.Join(k.Networks.Texts(), ", ")
	}
	section := &web.Section{ID: "key", Facts: []web.Fact{
		{Name: "Begins with", Cell: web.MonoText(k.Prefix())}, {Name: "Reaches", Cell: web.Words(scopeWords(k.Scope))},
		{Name: "From", Cell: web.Words(networks)}, {Name: "Last used", Cell: web.Time(k.LastUsedAt)},
		{Name: "Ends", Cell: web.Time(k.ExpiresAt)},
		{Name: "Made", Cell: web.Time(&k.CreatedAt)},
	}}
	v := &web.View{
		Title: k.Label, Marks: []*web.Mark{keyMark(r, k)}, Trail: []web.Link{{Text: "API keys", Href: keysPath}},
		Sections: []*web.Section{section},
	}
	if k.RevokedAt != nil {
		return v, nil
	}
	at := keysPath + "/" + string(k.ID)
	bind := boundFields()
	bind[1].Value = strings.Join(k.Networks.Texts(), "\n")
	if k.ExpiresAt != nil {
		bind[0].Value = k.ExpiresAt.UTC().Format("2006-01-02T15:04:05Z")
	}
	section.Forms = []*web.Form{
		{Name: "key.bind", Action: at + "/bind", Submit: "Change", Fold: "Change its end and networks", Fields: bind},
		{
			Name: "key.revoke", Action: at + "/revoke", Submit: "Revoke the key", Fold: "Revoke it", Danger: true,
			Intro: "It stops working at once, for ever.", Fields: []*web.Field{web.Typed(k.Label)},
		},
	}
	if r.Caller.Account.Plan.AllowsAPI() {
		section.Forms = append(section.Forms[:1:1], &web.Form{
			Name: "key.replace", Action: at + "/replace", Submit: "Replace the key", Fold: "Replace it by a new text", Danger: true,
			Intro: "The old text stops working at once; what the key reaches stays.",
		}, section.Forms[1])
	}
	return v, nil
}

func (s *site) replaceKey(r *web.Request) (web.Answer, error) {
	desk, err := s.use.Keys.Desk(r.Caller)
	if err != nil {
		return nil, err
	}
	key, text, err := desk.ReplaceKey(r.Context(), id.KeyID(r.Param("key")), keys.Bounds{})
	if err != nil {
		return nil, err
	}
	return keyView(key.Label, keysPath, text), nil
}

func (s *site) bindKey(r *web.Request) (web.Answer, error) {
	desk, err := s.use.Keys.Desk(r.Caller)
	if err != nil {
		return nil, err
	}
	limits, err := bounds(r)
	if err != nil {
		return nil, err
	}
	_, err = desk.BindKey(r.Context(), id.KeyID(r.Param("key")), limits)
	return web.Redirect{To: keysPath + "/" + r.Param("key")}, err
}

func (s *site) revokeKey(r *web.Request) (web.Answer, error) {
	k, err := s.keyOf(r)
	if err == nil {
		err = r.Confirm(k.Label)
	}
	if err != nil {
		return nil, err
	}
	desk, err := s.use.Keys.Desk(r.Caller)
	if err != nil {
		return nil, err
	}
	return web.Redirect{To: keysPath}, desk.RevokeKey(r.Context(), k.ID)
}
