package dashboard

import (
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
)

func (s *site) networkPages() []web.Page {
	const path = "/databases/{id}" + networkTab
	return []web.Page{
		web.Get("network", path, s.showNetwork, "listAllowlistEntries"),
		web.Post("network.add", path, path, s.addNetwork, "addAllowlistEntry").Says("The network may connect."),
		web.Post("network.remove", path+"/{entry}/remove", path, s.removeNetwork, "removeAllowlistEntry").
			Says("The network is removed, and what came from it was closed."),
	}
}

func (s *site) showNetwork(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.See)
	if err != nil {
		return nil, err
	}
	list, err := s.use.Allowlist.List(r.Context(), d)
	if err != nil {
		return nil, err
	}
	t := &web.Table{
		Caption: "Networks that may connect",
		Columns: []web.Column{{Title: "Network", Sort: "network"}, {Title: "Note", Sort: "note"}, {Title: "Added", Sort: "added"},
			{Title: ""}},
		Empty: &web.Empty{
			Text:    "Everybody with a password may connect, from everywhere. With a first network, only that one may.",
			Command: "svc allowlist add " + d.Record().Name + " 203.0.113.0/24",
		},
	}
	change := may(d, account.Configure)
	for _, e := range list {
		last := web.Cell{}
		if change {
			last.Forms = []*web.Form{button("network.remove", under(d.Record().ID, "network", string(e.ID), "remove"), "Remove")}
		}
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			web.MonoText(e.CIDR), web.Words(e.Description), web.Time(&e.CreatedAt), last,
		}})
	}
	section := &web.Section{ID: "network", Table: t.Arrange(r)}
	if change {
		section.Forms = []*web.Form{{
			Name: "network.add", Action: under(d.Record().ID, "network"), Submit: "Let it connect", Fold: "Add a network",
			Fields: []*web.Field{
				{Name: "cidr", Label: "Network", Max: 64, Placeholder: "203.0.113.0/24",
					Help: "An address or a network, IPv4 or IPv6. You are at " + r.Client.String() + "."},
				{Name: "description", Label: "Note", Max: 200, Optional: true},
			},
		}}
	}
	v := frame(d, networkTab, "Network")
	v.Sections = []*web.Section{section}
	return v, nil
}

func (s *site) addNetwork(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Configure)
	if err != nil {
		return nil, err
	}
	_, err = s.use.Allowlist.Add(r.Context(), d, r.Field("cidr"), r.Field("description"))
	return to(r, networkTab), err
}

func (s *site) removeNetwork(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.Configure)
	if err != nil {
		return nil, err
	}
	return to(r, networkTab), s.use.Allowlist.Remove(r.Context(), d, id.AllowlistEntryID(r.Param("entry")))
}
