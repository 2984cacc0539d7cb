package dashboard

import (
	"slices"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/ports"
)

const previewsPath = "/previews"

// ciPages are what pipelines make previews with. The previews themselves are made and ended by these (spec, section "Preview
// databases (CI)").
func (s *site) ciPages() []web.Page {
	const one = previewsPath + "/{namespace}"
	return []web.Page{
		web.Get("previews", previewsPath, s.showNamespaces, "findPreview", "listCINamespaces"),
		web.Post("namespace.create", previewsPath, previewsPath, s.createNamespace).Says("The namespace was made."),
		web.Get("namespace", one, s.showNamespace, "getPreview", "listTrusts"),
		web.Post("namespace.revoke", one+"/revoke", one, s.revokeNamespace).Says("The namespace is revoked, with its keys and trusts."),
		web.Post("ci-key.create", one+"/keys", one, s.createCIKey),
		web.Post("ci-key.revoke", one+"/keys/{key}/revoke", one, s.revokeCIKey).Says("The key works no more."),
		web.Post("trust.add", one+"/trusts", one, s.addTrust, "exchangeToken", "addTrust").
			Says("Tokens of the issuer are trusted."),
		web.Post("trust.remove", one+"/trusts/{trust}/remove", one, s.removeTrust, "removeTrust").
			Says("Tokens of the issuer are trusted no more."),
	}
}

func (s *site) showNamespaces(r *web.Request) (web.Answer, error) {
	desk, err := s.use.Keys.Reader(r.Caller)
	if err != nil {
		return nil, err
	}
	list, err := desk.Namespaces(r.Context(), r.Caller.Account.ID)
	if err != nil {
		return nil, err
	}
	v := &web.View{Title: "Previews",
		Lead: "Short-lived databases for CI, with synthetic data. A namespace keeps the previews of one pipeline apart."}
	if prompt := upgrade(r); prompt != nil {
		v.Sections = append(v.Sections, prompt)
		if len(list) == 0 {
			return v, nil
		}
	}
	t := &web.Table{
		Caption: "Namespaces",
		Columns: []web.Column{{Title: "Name", Sort: "name"}, {Title: "Status", Sort: "status"}, {Title: "Made", Sort: "made"}},
		Empty: &web.Empty{Text: "No namespace yet. With one and its key, a pipeline runs:",
			Command: "svc previews create --ref pr-42"},
	}
	for _, n := range list {
		mark := &web.Mark{Text: "open", Tone: web.Good}
		if n.RevokedAt != nil {
			mark = &web.Mark{Text: "revoked", Tone: web.Neutral}
		}
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{Text: n.Name, Href: previewsPath + "/" + string(n.ID)}, {Mark: mark}, web.Time(&n.CreatedAt),
		}})
	}
	section := &web.Section{ID: "namespaces", Table: t.Arrange(r)}
	if r.Caller.Account.Plan.AllowsAPI() {
		section.Forms = []*web.Form{{
			Name: "namespace.create", Action: previewsPath, Submit: "Make the namespace", Fold: "New namespace",
			Fields: []*web.Field{{Name: "name", Label: "Name", Max: 64, Placeholder: "web"}},
		}}
	}
	v.Sections = append(v.Sections, section)
	if len(list) == 0 {
		return v, nil
	}
	names := map[id.NamespaceID]string{}
	for _, n := range list {
		names[n.ID] = n.Name
	}
	return v, s.addPreviews(r, v, "", names)
}

// addPreviews adds a table of the previews of a namespace that live, or of all, with the names of the namespaces. The page
// changes with them.
func (s *site) addPreviews(r *web.Request, v *web.View, of id.NamespaceID, names map[id.NamespaceID]string) error {
	page, err := paged(r)
	if err != nil {
		return err
	}
	list, next, err := s.use.Previews.Living(r.Context(), r.Caller, of, page)
	if err != nil {
		return err
	}
	path := previewsPath
	t := &web.Table{
		Caption: "Living previews, the first to end first",
		Columns: []web.Column{
			{Title: "Preview"}, {Title: "Namespace"}, {Title: "Status"}, {Title: "Lease ends"}, {Title: "Under way"},
		},
		Empty: &web.Empty{Text: "No preview lives. A pipeline with a key of the namespace makes one:",
			Command: "svc previews create --ref pr-42"},
	}
	if of != "" {
		path += "/" + string(of)
		t.Columns = slices.Delete(t.Columns, 1, 2)
	}
	for _, l := range list {
		status, lease := web.Cell{Mark: statusMark(l.Status)}, web.Time(&l.ExpiresAt)
		if l.Lease == preview.Expired {
			status.Sub = "lease ended"
		}
		cells := []web.Cell{{Text: l.Ref, Mono: true, Href: pathOf(l.DatabaseID), Sub: l.Name}, status, lease, doneTo(l)}
		if of == "" {
			cells = slices.Insert(cells, 1, web.Cell{Text: names[l.NamespaceID], Href: previewsPath + "/" + string(l.NamespaceID)})
		}
		t.Rows = append(t.Rows, web.Row{Cells: cells})
		v.Watch = append(v.Watch, l.DatabaseID)
	}
	turned(t, path, page, next)
	v.Sections = slices.Insert(v.Sections, 0, &web.Section{ID: "living", Title: "Living previews", Table: t})
	return nil
}

func doneTo(l ports.LivingPreview) web.Cell {
	if l.OperationID == "" {
		return web.Words("–")
	}
	return web.Cell{Text: plain(l.Kind), Href: "/operations/" + string(l.OperationID)}
}

func (s *site) createNamespace(r *web.Request) (web.Answer, error) {
	desk, err := s.use.Keys.Desk(r.Caller)
	if err != nil {
		return nil, err
	}
	n, err := desk.CreateNamespace(r.Context(), r.Caller.Account.ID, r.Field("name"))
	return web.Redirect{To: previewsPath + "/" + string(n.ID)}, err
}

// namespaceOf is the namespace of a page.
func (s *site) namespaceOf(r *web.Request, desk *keys.Desk) (n account.Namespace, err error) {
	list, err := desk.Namespaces(r.Context(), r.Caller.Account.ID)
	if err != nil {
		return n, err
	}
	for _, n := range list {
		if string(n.ID) == r.Param("namespace") {
			return n, nil
		}
	}
	return n, web.ErrNothing()
}

func (s *site) showNamespace(r *web.Request) (web.Answer, error) {
	desk, err := s.use.Keys.Reader(r.Caller)
	if err != nil {
		return nil, err
	}
	n, err := s.namespaceOf(r, desk)
	if err != nil {
		return nil, err
	}
	ciKeys, err := desk.CIKeys(r.Context(), n.ID)
	if err != nil {
		return nil, err
	}
	trusts, err := desk.Trusts(r.Context(), n.ID)
	if err != nil {
		return nil, err
	}
	at, open := previewsPath+"/"+string(n.ID), n.RevokedAt == nil
	v := &web.View{Title: n.Name, Trail: []web.Link{{Text: "Previews", Href: previewsPath}}}
	keyTable := &web.Table{
		Caption: "Keys of the namespace",
		Columns: []web.Column{{Title: "Key"}, {Title: "Status"}, {Title: "Of"}, {Title: "Last used"}, {Title: "Ends"}, {Title: ""}},
		Empty:   &web.Empty{Text: "No key yet."},
	}
	for _, k := range ciKeys {
		last := web.Cell{}
		if k.What.RevokedAt == nil && !k.What.Expired(r.Now) {
			last.Forms = []*web.Form{button("ci-key.revoke", at+"/keys/"+string(k.What.ID)+"/revoke", "Revoke")}
		}
		of := "made here"
		if k.What.Exchanged() {
			of = k.What.Issuer + " " + k.What.Subject
		}
		keyTable.Rows = append(keyTable.Rows, web.Row{Cells: []web.Cell{
			web.MonoText(k.What.Prefix()), {Mark: keyMark(r, k.What)}, web.Words(of), web.Time(k.What.LastUsedAt),
			web.Time(k.What.ExpiresAt), last,
		}})
	}
	trustTable := &web.Table{
		Caption: "Issuers whose tokens make keys",
		Columns: []web.Column{{Title: "Issuer"}, {Title: "Audience"}, {Title: "Subject"}, {Title: ""}},
		Empty:   &web.Empty{Text: "No trust yet. With one, a pipeline needs no stored key.", Command: "svc auth ci"},
	}
	for _, t := range trusts {
		trustTable.Rows = append(trustTable.Rows, web.Row{Cells: []web.Cell{
			web.MonoText(t.Issuer), web.MonoText(t.Audience), web.MonoText(string(t.Subject)),
			{Forms: []*web.Form{button("trust.remove", at+"/trusts/"+string(t.ID)+"/remove", "Remove")}},
		}})
	}
	keySection := &web.Section{ID: "ci-keys", Title: "Keys", Table: keyTable}
	trustSection := &web.Section{ID: "trusts", Title: "Trusts", Table: trustTable}
	v.Sections = []*web.Section{keySection, trustSection}
	if !open {
		v.Marks = []*web.Mark{{Text: "revoked", Tone: web.Neutral}}
		return v, s.addPreviews(r, v, n.ID, nil)
	}
	if r.Caller.Account.Plan.AllowsAPI() {
		keySection.Forms = []*web.Form{button("ci-key.create", at+"/keys", "Make a key")}
		trustSection.Forms = []*web.Form{{
			Name: "trust.add", Action: at + "/trusts", Submit: "Trust it", Fold: "Trust an issuer",
			Fields: []*web.Field{
				{Name: "issuer", Label: "Issuer", Type: "url", Max: 200, Placeholder: "https://token.actions.githubusercontent.com"},
				{Name: "audience", Label: "Audience", Max: 200, Placeholder: "pgherd"},
				{Name: "subject", Label: "Subject", Max: 200, Placeholder: "repo:acme/web:*", Help: "A * stands for any characters."},
			},
		}}
	}
	v.Sections = append(v.Sections, &web.Section{Title: "Revoke", Forms: []*web.Form{{
		Name: "namespace.revoke", Action: at + "/revoke", Submit: "Revoke the namespace", Danger: true, Fold: "Revoke the namespace",
		Intro:  "All its keys and trusts end at once, for ever. Its previews stay until their leases end.",
		Fields: []*web.Field{web.Typed(n.Name)},
	}}})
	return v, s.addPreviews(r, v, n.ID, nil)
}

func (s *site) revokeNamespace(r *web.Request) (web.Answer, error) {
	desk, err := s.use.Keys.Desk(r.Caller)
	if err != nil {
		return nil, err
	}
	n, err := s.namespaceOf(r, desk)
	if err == nil {
		err = r.Confirm(n.Name)
	}
	if err != nil {
		return nil, err
	}
	return web.Redirect{To: previewsPath}, desk.RevokeNamespace(r.Context(), n.ID)
}

func (s *site) createCIKey(r *web.Request) (web.Answer, error) {
	desk, err := s.use.Keys.Desk(r.Caller)
	if err != nil {
		return nil, err
	}
	namespace := id.NamespaceID(r.Param("namespace"))
	_, text, err := desk.CreateCIKey(r.Context(), namespace)
	if err != nil {
		return nil, err
	}
	return keyView("of the pipeline", previewsPath+"/"+string(namespace), text), nil
}

// back leads to the namespace of a request.
func backToNamespace(r *web.Request) web.Answer {
	return web.Redirect{To: previewsPath + "/" + r.Param("namespace")}
}

func (s *site) revokeCIKey(r *web.Request) (web.Answer, error) {
	desk, err := s.use.Keys.Desk(r.Caller)
	if err != nil {
		return nil, err
	}
	return backToNamespace(r), desk.RevokeCIKey(r.Context(), id.KeyID(r.Param("key")))
}

func (s *site) addTrust(r *web.Request) (web.Answer, error) {
	desk, err := s.use.Keys.Desk(r.Caller)
	if err != nil {
		return nil, err
	}
	_, err = desk.AddTrust(r.Context(), keys.NewTrust{
		NamespaceID: id.NamespaceID(r.Param("namespace")), Issuer: r.Field("issuer"), Audience: r.Field("audience"),
		Subject: r.Field("subject"),
	})
	return backToNamespace(r), err
}

func (s *site) removeTrust(r *web.Request) (web.Answer, error) {
	desk, err := s.use.Keys.Desk(r.Caller)
	if err != nil {
		return nil, err
	}
	return backToNamespace(r), desk.RemoveTrust(r.Context(), id.TrustID(r.Param("trust")))
}
