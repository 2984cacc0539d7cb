package dashboard

import (
	"context"
	"fmt"
	"strconv"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
)

const (
	serversPath = consolePath + "/servers"
	serverPath  = serversPath + "/{id}"
)

func (s *site) fleetPages() []web.Page {
	return []web.Page{
		web.Get("operator.fleet", consolePath, s.look(s.showFleet)),
		web.Get("operator.fleet.check", consolePath+"/check", s.look(s.checkFleet)),
		web.Get("operator.server", serverPath, s.look(s.showServer)),
		web.Post("operator.server.set", serverPath+"/set", serverPath, s.setServer).Says("The server was changed."),
		web.Post("operator.server.remove", serverPath+"/remove", serverPath, s.removeServer).Says("The server was removed."),
	}
}

func pathOfServer(of id.ServerID) string { return serversPath + "/" + string(of) }

func (s *site) showFleet(r *web.Request, o *operator.Operator) (web.Answer, error) {
	fleet, err := o.Fleet(r.Context())
	if err != nil {
		return nil, err
	}
	t := &web.Table{
		Caption: "The database servers",
		Columns: []web.Column{
			{Title: "Server", Sort: "name"}, {Title: "State", Sort: "state"}, {Title: "Databases", Sort: "databases"},
			{Title: "Connections sold", Sort: "connections"}, {Title: "Open operations", Number: true, Sort: "operations"},
			{Title: "Last answer", Sort: "answered"},
		},
		Empty: &web.Empty{Text: "No server yet. On a host of the control plane:", Command: "pgherd admin server add --help"},
	}
	for _, one := range fleet {
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{Text: one.Name, Href: pathOfServer(one.ID), Sub: one.PublicHost}, {Mark: serverMark(r, one.Server)},
			partCell(one.Databases+one.Deleted, one.Capacity), partCell(one.Sold, one.Connections),
			{Text: strconv.Itoa(one.Operations), Key: int64(one.Operations)}, web.Time(one.AnsweredAt),
		}})
	}
	v := console(fleetTab, "Fleet")
	v.Sections = []*web.Section{{ID: "fleet", Table: t.Arrange(r), Links: []web.Link{
		{Text: "Check all servers now", Href: consolePath + "/check"},
	}}}
	return v, nil
}

func serverMark(r *web.Request, s server.Server) *web.Mark {
	switch {
	case s.AwaySince != nil:
		return &web.Mark{Text: "does not answer", Tone: web.Bad}
	case !s.HeardFrom(r.Now):
		return &web.Mark{Text: "not heard from", Tone: web.Warning}
	case s.Avoided(r.Now):
		return &web.Mark{Text: "avoided", Tone: web.Warning}
	case !s.Enabled:
		return &web.Mark{Text: "takes no new databases", Tone: web.Neutral}
	default:
		return &web.Mark{Text: "in service", Tone: web.Good}
	}
}

// partCell shows how many there are of as many as there may be; 0 is no bound.
func partCell(n, of int) web.Cell {
	if of == 0 {
		return web.Cell{Text: strconv.Itoa(n), Key: int64(n)}
	}
	bar := &web.Bar{Percent: min(100, n*100/of), Text: fmt.Sprintf("%d of %d", n, of)}
	if bar.Percent >= 90 {
		bar.Tone = web.Warning
	}
	return web.Cell{Bar: bar, Key: int64(n)}
}

// checkFleet talks to every agent, and shows what is not as it should be.
func (s *site) checkFleet(r *web.Request, o *operator.Operator) (web.Answer, error) {
	list, err := o.CheckServers(r.Context(), s.Version)
	if err != nil {
		return nil, err
	}
	t := findingTable("What is not as it should be")
	t.Columns = append([]web.Column{{Title: "Server"}}, t.Columns...)
	t.Empty = &web.Empty{Text: "Every server answers, and nothing is to be done."}
	for _, one := range list {
		for _, f := range one.Findings {
			if f.Verdict != server.OK {
				at := web.Cell{Text: one.Server.Name, Href: pathOfServer(one.Server.ID)}
				t.Rows = append(t.Rows, web.Row{Cells: append([]web.Cell{at}, findingCells(f)...)})
			}
		}
	}
	v := below(fleetTab, "Fleet", "Check of all servers")
	v.Sections = []*web.Section{{Table: t}}
	return v, nil
}

func findingTable(caption string) *web.Table {
	return &web.Table{
		Caption: caption, Columns: []web.Column{{Title: "What"}, {Title: "Verdict"}, {Title: "Found"}, {Title: "Do"}},
	}
}

func findingCells(f server.Finding) []web.Cell {
	tone := web.Good
	switch f.Verdict {
	case server.OK:
	case server.Notice:
		tone = web.Warning
	case server.Wrong:
		tone = web.Bad
	}
	return []web.Cell{
		web.Words(f.Check), {Mark: &web.Mark{Text: string(f.Verdict), Tone: tone}}, web.Words(f.Found), web.Words(f.Do),
	}
}

// checkedParameter has the page of a server talk to its agent.
const checkedParameter = "check"

func (s *site) showServer(r *web.Request, o *operator.Operator) (web.Answer, error) {
	one, has, err := o.Server(r.Context(), id.ServerID(r.Param("id")))
	if err != nil {
		return nil, found(err)
	}
	at := pathOfServer(one.ID)
	facts := &web.Section{ID: "server", Facts: []web.Fact{
		{Name: "Customers connect to", Cell: web.MonoText(fmt.Sprintf("%s:%d", one.PublicHost, one.PublicPort))},
		{Name: "Agent", Cell: web.MonoText(one.AgentURL)},
		{Name: "Last answer", Cell: web.Time(one.AnsweredAt)},
		{Name: "Databases", Cell: partCell(has.Databases+has.Deleted, one.Capacity)},
		{Name: "Of these deleted", Cell: web.Words(strconv.Itoa(has.Deleted))},
		{Name: "Connections sold", Cell: partCell(has.Sold, one.Connections)},
		{Name: "Backups", Cell: web.Words(strconv.Itoa(has.Backups))},
		{Name: "Open operations", Cell: web.Words(strconv.Itoa(has.Operations))},
		{Name: "Changes of logins", Cell: web.Words(strconv.Itoa(has.Changes))},
		{Name: "Added", Cell: web.Time(&one.CreatedAt)},
		{Name: "ID", Cell: web.MonoText(string(one.ID))},
	}, Links: []web.Link{
		{Text: "Check it now", Href: at + "?" + checkedParameter + "=now"},
		{Text: "Examine it", Href: consolePath + doctorTab + "/" + string(one.ID)},
		{Text: "Its databases", Href: consolePath + databaseTab + "?server=" + string(one.ID)},
		{Text: "Its operations", Href: consolePath + orderTab + "?state=all&server=" + string(one.ID)},
	}, Forms: []*web.Form{
		{
			Name: "operator.server.set", Action: at + "/set", Submit: "Change the server", Fold: "Change what it takes",
			Fields: []*web.Field{
				{Name: "enabled", Label: "New databases", Type: "select", Value: strconv.FormatBool(one.Enabled), Options: []web.Option{
					{Value: "true", Text: "are placed on it"}, {Value: "false", Text: "are placed elsewhere"},
				}},
				{Name: "capacity", Label: "Most databases", Max: 9, Value: strconv.Itoa(one.Capacity)},
				{Name: "connections", Label: "Most connections that are sold", Max: 9, Value: strconv.Itoa(one.Connections),
					Help: "0 counts none."},
				reasonField(),
			},
		},
		{
			Name: "operator.server.remove", Action: at + "/remove", Submit: "Remove the server", Fold: "Remove it", Danger: true,
			Intro: "Only a server on which nothing stands can be removed.", Fields: []*web.Field{web.Typed(one.Name), reasonField()},
		},
	}}
	v := below(fleetTab, "Fleet", one.Name)
	v.Marks = []*web.Mark{serverMark(r, one)}
	v.Sections = []*web.Section{facts}
	if r.Query(checkedParameter) == "" {
		return v, nil
	}
	_, list, err := o.CheckServer(r.Context(), one.ID, s.Version)
	if err != nil {
		return nil, err
	}
	t := findingTable("What a check of the server finds")
	for _, f := range list {
		t.Rows = append(t.Rows, web.Row{Cells: findingCells(f)})
	}
	facts.ID = "" // read once a minute, the page would ask the agent each time
	v.Sections = append([]*web.Section{{Table: t}}, v.Sections...)
	return v, nil
}

// wholeNumber reads a field with a number that is not negative. VALIDATION_ERROR on the field.
func wholeNumber(r *web.Request, field string) (int, error) {
	n, err := strconv.Atoi(r.Field(field))
	if err != nil || n < 0 {
		return 0, fault.Invalid(field, "must be a whole number")
	}
	return n, nil
}

func (s *site) setServer(r *web.Request) (web.Answer, error) {
	capacity, err := wholeNumber(r, "capacity")
	if err != nil {
		return nil, err
	}
	connections, err := wholeNumber(r, "connections")
	if err != nil {
		return nil, err
	}
	of, enabled := id.ServerID(r.Param("id")), r.Field("enabled") == "true"
	return s.ordered(r, pathOfServer(of), func(ctx context.Context, o *operator.Operator, _ operation.Order) error {
		_, err := o.SetServer(ctx, of, operator.ServerChange{Capacity: &capacity, Connections: &connections, Enabled: &enabled})
		return err
	})
}

func (s *site) removeServer(r *web.Request) (web.Answer, error) {
	of := id.ServerID(r.Param("id"))
	return s.ordered(r, consolePath, func(ctx context.Context, o *operator.Operator, _ operation.Order) error {
		one, _, err := o.Server(ctx, of)
		if err == nil {
			err = r.Confirm(one.Name)
		}
		if err == nil {
			_, err = o.RemoveServer(ctx, of)
		}
		return err
	})
}
