package dashboard

import (
	"fmt"
	"net/url"
	"strings"

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
		t.Next = web.WithQuery(path, cursorParameter, next.Cursor())
	}
	if p.After != nil {
		t.First = path
	}
}

// listing is what the address asks for of the databases.
func listing(r *web.Request) database.Listing {
	q := database.Listing{Text: r.Query("q"), Whose: database.Whose(r.Query("whose"))}
	by, down := strings.CutPrefix(r.Query("sort"), "-")
	q.By, q.Descending = database.Order(by), down
	if status := r.Query("status"); status != "" {
		q.Statuses = []database.Status{database.Status(status)}
	}
	if environment := r.Query("environment"); environment != "" {
		q.Environment = new(database.Environment(environment))
	}
	return q
}

func (s *site) showDatabases(r *web.Request) (web.Answer, error) {
	page, err := paged(r)
	if err != nil {
		return nil, err
	}
	q := listing(r)
	list, next, err := s.use.Databases.Find(r.Context(), r.Caller, q, page)
	if err != nil {
		return nil, err
	}
	here := func(pairs ...string) string {
		of := url.Values{}
		for _, name := range []string{"q", "status", "environment", "whose", "sort"} {
			if v := r.Query(name); v != "" {
				of.Set(name, v)
			}
		}
		for i := 0; i < len(pairs); i += 2 {
			of.Set(pairs[i], pairs[i+1])
		}
		if len(of) == 0 {
			return "/"
		}
		return "/?" + of.Encode()
	}
	t := &web.Table{
		Caption: "Your databases, and those that others share with you",
		Columns: []web.Column{
			{Title: "Name", Sort: "name"}, {Title: "Status"}, {Title: "Size", Sort: "size"}, {Title: "Verified backup"},
			{Title: "Environment"}, {Title: "Your role"}, {Title: "Created", Sort: string(database.ByCreation)},
		},
		Empty: &web.Empty{
			Text:    "No database yet. Make the first one here, or with the command-line client:",
			Command: "svc databases create shop",
		},
		Filtered: q.Text != "" || q.Whose != "" || q.Statuses != nil || q.Environment != nil,
	}
	for i := range t.Columns {
		if c := &t.Columns[i]; c.Sort != "" || c.Title == "Created" {
			order(c, q, here)
		}
	}
	v := &web.View{Title: "Databases", Main: &web.Link{Text: "New database", Href: newPath}}
	for _, d := range list {
		status := web.Cell{Mark: statusMark(d.Status)}
		if m := storageMark(d.StorageStatus); m != nil {
			status.Sub = m.Text
		}
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{Text: d.DisplayName, Href: pathOf(d.ID), Sub: d.Name}, status, sizeCell(d.SizeBytes, d.StorageQuota()),
			web.Time(d.VerifiedBackupAt), web.Words(plain(d.Environment)), web.Words(string(d.Standing)), web.Time(&d.CreatedAt),
		}})
		v.Watch = append(v.Watch, d.ID)
	}
	turned(t, here(), page, next)
	if len(list) > 8 || t.Filtered || page.After != nil {
		t.Filter = databaseFilter(r)
	}
	v.Sections = []*web.Section{{
		ID: "databases", Table: t, Links: []web.Link{{Text: "Deleted databases", Href: deletedPath}},
	}}
	return v, nil
}

// order makes a column's title the link that sorts by it, and the other way round.
func order(c *web.Column, q database.Listing, here func(...string) string) {
	next := c.Sort
	if q.By == database.Order(c.Sort) {
		c.Order = "ascending"
		if q.Descending {
			c.Order = "descending"
		} else {
			next = "-" + next
		}
	}
	c.Href = here("sort", next)
}

func databaseFilter(r *web.Request) *web.Form {
	form := &web.Form{Action: "/", Get: true, Submit: "Filter", Fields: []*web.Field{
		{Name: "q", Label: "Name", Type: "search", Value: r.Query("q"), Optional: true, Max: 64},
		{
			Name: "status", Label: "Status", Type: "select", Value: r.Query("status"),
			Options: options(database.Active.Values(), "any"),
		},
		{
			Name: "environment", Label: "Environment", Type: "select", Value: r.Query("environment"),
			Options: options(database.Production.Values(), "any"),
		},
		{Name: "whose", Label: "Whose", Type: "select", Value: r.Query("whose"), Options: []web.Option{
			{Text: "everybody's"}, {Value: string(database.Own), Text: "yours"}, {Value: string(database.Shared), Text: "shared with you"},
		}},
	}}
	if sort := r.Query("sort"); sort != "" {
		form.Hidden = []web.Pair{{Name: "sort", Value: sort}}
	}
	return form
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
