package dashboard

import (
	"fmt"
	"net/url"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

func (s *site) listPages() []web.Page {
	return []web.Page{web.Get("databases", "/{$}", s.showDatabases, "listDatabases")}
}

// pageLength is how many entries a page of a list without a bound has.
const pageLength = 50

// cursorParameter names the entry after which a page of a list begins.
const cursorParameter = "after"

// paged is the page of a list that the address asks for.
func paged(r *web.Request) (ports.Page, error) {
	p := ports.Page{Limit: pageLength}
	if text := r.Query(cursorParameter); text != "" {
		var err error
		if p.After, err = ports.ParseCursor(text); err != nil {
			return p, err
		}
	}
	return p, nil
}

// turned adds to a table where it goes on, and where it begins.
func turned(t *web.Table, path string, p ports.Page, next *ports.Position) {
	if next != nil {
		t.Next = path + "?" + url.Values{cursorParameter: {next.Cursor()}}.Encode()
	}
	if p.After != nil {
		t.First = path
	}
}

func (s *site) showDatabases(r *web.Request) (web.Answer, error) {
	page, err := paged(r)
	if err != nil {
		return nil, err
	}
	list, next, err := s.use.Databases.List(r.Context(), r.Caller, page)
	if err != nil {
		return nil, err
	}
	t := &web.Table{
		Caption: "Your databases, and those that others share with you",
		Columns: []web.Column{
			{Title: "Name"}, {Title: "Status"}, {Title: "Size"}, {Title: "Environment"}, {Title: "Whose"}, {Title: "Created"},
		},
		Empty: &web.Empty{Text: "No database yet. Make the first one here, or with the command-line client:",
			Command: "svc databases create shop"},
	}
	v := &web.View{Title: "Databases", Main: &web.Link{Text: "New database", Href: newPath}}
	for _, d := range list {
		whose := "yours"
		if d.AccountID != r.Caller.Account.ID {
			whose = "shared with you"
		}
		status := web.Cell{Mark: statusMark(d.Status)}
		if m := storageMark(d.StorageStatus); m != nil {
			status.Sub = m.Text
		}
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{Text: d.DisplayName, Href: pathOf(d.ID), Sub: d.Name}, status, sizeCell(d.SizeBytes, d.StorageQuota()),
			web.Words(plain(d.Environment)), web.Words(whose), web.Time(&d.CreatedAt),
		}})
		v.Watch = append(v.Watch, d.ID)
	}
	turned(t, "/", page, next)
	v.Sections = []*web.Section{{
		ID: "databases", Table: t,
		Links: []web.Link{{Text: "Deleted databases", Href: deletedPath}},
	}}
	return v, nil
}

const newPath = "/databases/new"

func (s *site) createPages() []web.Page {
	return []web.Page{
		web.Get("database.new", newPath, s.showNew),
		web.Post("database.create", "/databases", newPath, s.create, "createDatabase").Of(ratelimit.Create),
	}
}

func (s *site) showNew(*web.Request) (web.Answer, error) {
	form := &web.Form{
		Name: "database.create", Action: "/databases", Submit: "Create the database",
		Fields: []*web.Field{
			nameField(), displayNameField(),
			{Name: "environment", Label: "Environment", Type: "select", Options: options(database.Production.Values(), "none")},
			{
				Name: "scheduledBackup", Label: "Backups", Type: "select",
				Options: append([]web.Option{{Text: "as the installation does"}}, schedules()...),
			},
			{
				Name: "roleModel", Label: "Logins", Type: "select", Value: string(database.Managed),
				Options: []web.Option{
					{Value: string(database.Managed), Text: "owner, runtime and read-only"},
					{Value: string(database.SingleLogin), Text: "one for everything"},
				},
			},
		},
	}
	return &web.View{
		Title: "New database", Trail: []web.Link{{Text: "Databases", Href: "/"}},
		Lead:     "It is made at once, which takes a few seconds. Its password is shown to you then, and not again.",
		Sections: []*web.Section{{Forms: []*web.Form{form.Once(s.once())}}},
	}, nil
}

func nameField() *web.Field {
	return &web.Field{
		Name: "name", Label: "Name", Max: 50, Focus: true, Complete: "off",
		Help: "3 to 50 lower-case letters, digits and hyphens. The PostgreSQL database and its owner's login are called so, for ever.",
	}
}

func displayNameField() *web.Field {
	return &web.Field{Name: "displayName", Label: "Display name", Max: 64, Optional: true,
		Help: "How it is called here. Empty: its name."}
}

func schedules() []web.Option {
	return []web.Option{{Value: string(database.Daily), Text: "every day"},
		{Value: string(database.NoSchedule), Text: "only on demand"}}
}

// chosen is a field that may be left out.
func chosen[T ~string](r *web.Request, field string) *T {
	if v := T(r.Field(field)); v != "" {
		return &v
	}
	return nil
}

// displayed is the display name that a form has sent, or the name in its place.
func displayed(r *web.Request) string {
	if v := r.Field("displayName"); v != "" {
		return v
	}
	return r.Field("name")
}

func (s *site) create(r *web.Request) (web.Answer, error) {
	made, err := s.use.Databases.Create(r.Context(), r.Caller, databases.CreateRequest{
		Name: r.Field("name"), DisplayName: displayed(r), RoleModel: chosen[database.RoleModel](r, "roleModel"),
		Environment: chosen[database.Environment](r, "environment"), Schedule: chosen[database.Schedule](r, "scheduledBackup"),
		Key: idempotency.Key(r.Once()),
	})
	if err != nil {
		return nil, err
	}
	r.About(string(made.Record.ID))
	return madeView("The database is ready", made), nil
}

// madeView shows how to connect to a new database, with its password where that is known.
func madeView(title string, made databases.Created) *web.View {
	section := &web.Section{
		Title: made.Record.DisplayName,
		Links: []web.Link{{Text: "I have kept the password: to the database", Href: pathOf(made.Record.ID)}},
	}
	if made.Password == "" {
		section.Alert = &web.Alert{Text: "The password was shown before, and is not shown again. It can be rotated under Logins."}
		section.Codes = connections(made.Record, made.Username, "")
	} else {
		section.Note = "The password is shown this once. If it is lost, it can be rotated under Logins."
		section.Codes = append([]web.Code{{Label: "Password of " + made.Username, Text: made.Password, Secret: true}},
			connections(made.Record, made.Username, made.Password)...)
	}
	return &web.View{
		Title: title, Trail: []web.Link{{Text: "Databases", Href: "/"}}, Sections: []*web.Section{section},
	}
}

// connections are the ways to connect. Without a password, it is left open.
func connections(d database.Record, username, password string) []web.Code {
	secret, env := password != "", password
	if !secret {
		env = "…"
	}
	return []web.Code{
		{Label: "Connection string", Text: d.ConnectionString(username, password), Secret: secret},
		{Label: "psql", Text: "psql '" + d.ConnectionString(username, "") + "'"},
		{Label: "Environment", Secret: secret, Text: fmt.Sprintf(
			"PGHOST=%s\nPGPORT=%d\nPGDATABASE=%s\nPGUSER=%s\nPGPASSWORD=%s\nPGSSLMODE=verify-full", d.Host, d.Port, d.Name, username,
			env)},
	}
}
