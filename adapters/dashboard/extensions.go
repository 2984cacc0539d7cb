package dashboard

import (
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/rollout"
)

func (s *site) extensionPages() []web.Page {
	const path = "/databases/{id}" + extensionsTab
	return []web.Page{
		web.Get("extensions", path, s.showExtensions, "listExtensions", "getExtensionOperation"),
		web.Post("extension.change", path, path, s.changeExtension, "changeExtension").Says("The change is queued."),
	}
}

func (s *site) showExtensions(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.See, rollout.ExtensionCatalog)
	if err != nil {
		return nil, err
	}
	list, err := s.use.Extensions.Catalog(r.Context(), d)
	if err != nil {
		return nil, err
	}
	t := &web.Table{
		Caption: "Extensions of PostgreSQL that the database can have",
		Columns: []web.Column{
			{Title: "Name", Sort: "name"}, {Title: "Installed", Sort: "installed"}, {Title: "Of the server", Sort: "server"},
			{Title: "Schema"}, {Title: ""},
		},
	}
	for _, e := range list {
		installed := web.Cell{Mark: &web.Mark{Text: "no", Tone: web.Neutral}}
		if e.InstalledVersion != "" {
			installed.Mark = &web.Mark{Text: e.InstalledVersion, Tone: web.Good}
		}
		version := web.Words(e.DefaultVersion)
		if e.Available && !e.RestoreQualified {
			version.Sub = "not proven to be restorable"
		}
		last := web.Cell{}
		if change := changeOf(e); change != "" && may(d, account.Configure) {
			f := button("extension.change", under(d.Record().ID, "extensions"), plain(change),
				web.Pair{Name: "extension", Value: string(e.Name)}, web.Pair{Name: "kind", Value: string(change)})
			last.Forms = []*web.Form{f.Once(s.once())}
		}
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{web.MonoText(string(e.Name)), installed, version, web.Words(e.Schema), last}})
	}
	v := frame(d, extensionsTab, "Extensions")
	v.Sections = []*web.Section{{ID: "extensions", Table: t.Arrange(r)}}
	return v, nil
}

// changeOf is what can be done with an extension; empty for nothing.
func changeOf(e extension.Entry) extension.Change {
	switch {
	case !e.Available || !e.RestoreQualified:
		return ""
	case e.InstalledVersion == "":
		return extension.Install
	case e.InstalledVersion != e.DefaultVersion:
		return extension.Upgrade
	default:
		return ""
	}
}

func (s *site) changeExtension(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Configure, rollout.ExtensionCatalog)
	if err != nil {
		return nil, err
	}
	o, err := s.use.Extensions.Start(r.Context(), d, extension.Request{
		Extension: extension.Name(r.Field("extension")), Change: extension.Change(r.Field("kind")), Key: idempotency.Key(r.Once()),
	})
	return web.Redirect{To: "/operations/" + string(o.ID)}, err
}
