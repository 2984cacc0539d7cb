package dashboard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
)

const installationPath = consolePath + installationTab

func (s *site) installationPages() []web.Page {
	post := func(name, path string, do func(*web.Request) (web.Answer, error)) web.Page {
		return web.Post(name, installationPath+path, installationPath, do)
	}
	return []web.Page{
		web.Get("operator.installation", installationPath, s.look(s.showInstallation)),
		post("operator.feature", "/feature", s.setFeature).Says("The feature was changed."),
		post("operator.maintenance", "/maintenance", s.setMaintenance).Says("Maintenance was changed."),
	}
}

func (s *site) showInstallation(r *web.Request, o *operator.Operator) (web.Answer, error) {
	features, err := o.FeatureList(r.Context())
	if err != nil {
		return nil, err
	}
	on, since, err := o.Maintenance(r.Context())
	if err != nil {
		return nil, err
	}
	operators, err := o.Operators(r.Context())
	if err != nil {
		return nil, err
	}
	people := &web.Table{
		Caption: "Who may use this console",
		Columns: []web.Column{{Title: "Person"}, {Title: "Passkeys", Number: true}, {Title: "Since"}},
	}
	for _, p := range operators {
		people.Rows = append(people.Rows, web.Row{Cells: []web.Cell{
			{Text: p.Email, Sub: p.Name}, web.Words(fmt.Sprint(p.Passkeys)), web.Time(&p.AddedAt),
		}})
	}
	v := console(installationTab, "Installation")
	v.Sections = []*web.Section{
		maintenanceSection(on, web.Time(since)),
		featureSection(features),
		{ID: "operators", Title: "Operators", Table: people,
			Note: "They are named on a host of the control plane: pgherd admin operator add --email …"},
	}
	return v, nil
}

func maintenanceSection(on bool, since web.Cell) *web.Section {
	mark, form := &web.Mark{Text: "off", Tone: web.Good}, &web.Form{
		Name: "operator.maintenance", Action: installationPath + "/maintenance", Submit: "Begin maintenance", Fold: "Begin it",
		Intro: "Every other page, and the API, answer MAINTENANCE until it ends.", Hidden: []web.Pair{{Name: "what", Value: give}},
		Fields: []*web.Field{reasonField()}, Danger: true,
	}
	if on {
		mark = &web.Mark{Text: "on", Tone: web.Warning}
		form.Submit, form.Fold, form.Intro, form.Danger = "End maintenance", "End it", "", false
		form.Hidden[0].Value = take
	}
	return &web.Section{ID: "maintenance", Title: "Maintenance", Facts: []web.Fact{
		{Name: "Now", Cell: web.Cell{Mark: mark}}, {Name: "Since", Cell: since},
	}, Forms: []*web.Form{form}}
}

func featureSection(list []operator.Feature) *web.Section {
	t := &web.Table{
		Caption: "What is on for the whole installation",
		Columns: []web.Column{{Title: "Feature"}, {Title: "State"}, {Title: "Enrolled databases"}, {Title: "Changed"}},
	}
	var names []web.Option
	for _, f := range list {
		mark := &web.Mark{Text: "off", Tone: web.Neutral}
		if f.Enabled {
			mark = &web.Mark{Text: "on", Tone: web.Good}
		}
		var enrolled []string
		for _, route := range slices.Sorted(maps.Keys(f.Enrolled)) {
			enrolled = append(enrolled, fmt.Sprintf("%s %d", route, f.Enrolled[route]))
		}
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			web.Words(f.Name), {Mark: mark}, web.Words(strings.Join(enrolled, ", ")), web.Time(f.ChangedAt),
		}})
		names = append(names, web.Option{Value: f.Name, Text: f.Name})
	}
	return &web.Section{ID: "features", Title: "Features", Table: t, Forms: []*web.Form{{
		Name: "operator.feature", Action: installationPath + "/feature", Submit: "Change the feature", Fold: "Turn one on or off",
		Fields: []*web.Field{
			{Name: "feature", Label: "Feature", Type: "select", Options: names},
			{Name: "what", Label: "It is", Type: "select", Options: []web.Option{{Value: give, Text: "on"}, {Value: take, Text: "off"}}},
			reasonField(),
		},
	}}}
}

func (s *site) setFeature(r *web.Request) (web.Answer, error) {
	on, err := giving(r)
	if err != nil {
		return nil, err
	}
	name := r.Field("feature")
	if err := rollout.CheckFeature(name); err != nil {
		return nil, err
	}
	return s.ordered(r, installationPath, func(ctx context.Context, o *operator.Operator, _ operation.Order) error {
		return o.SetFeature(ctx, name, on)
	})
}

func (s *site) setMaintenance(r *web.Request) (web.Answer, error) {
	on, err := giving(r)
	if err != nil {
		return nil, err
	}
	return s.ordered(r, installationPath, func(ctx context.Context, o *operator.Operator, _ operation.Order) error {
		return o.SetMaintenance(ctx, on)
	})
}
