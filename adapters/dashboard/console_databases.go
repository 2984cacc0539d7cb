package dashboard

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

const (
	recordsPath = consolePath + databaseTab
	recordPath  = recordsPath + "/{id}"
)

func (s *site) databaseListPages() []web.Page {
	return []web.Page{
		web.Get("operator.databases", recordsPath, s.look(s.showRecords)),
		web.Get("operator.database", recordPath, s.look(s.showRecord)),
		web.Post("operator.database.enroll", recordPath+"/enroll", recordPath, s.enroll).Says("The enrolments were changed."),
		web.Post("operator.database.confirm", recordPath+"/confirm-upgrade", recordPath, s.confirmOfRecord).
			Says("No way back is open."),
		web.Post("operator.database.roles", recordPath+"/roles", recordPath, s.activateRoles).Says("Additional roles were changed."),
	}
}

func pathOfRecord(of id.DatabaseID) string { return recordsPath + "/" + string(of) }

func (s *site) showRecords(r *web.Request, o *operator.Operator) (web.Answer, error) {
	page, err := paged(r)
	if err != nil {
		return nil, err
	}
	of := ports.DatabaseFilter{}
	if of.Name, err = fault.Label("q", r.Query("q"), 0, mostSearched); err != nil {
		return nil, err
	}
	if of.ServerID, err = boundedByID[id.ServerID](r, "server"); err != nil {
		return nil, err
	}
	if of.AccountID, err = boundedByID[id.AccountID](r, "account"); err != nil {
		return nil, err
	}
	status, err := bounded(r, "status", database.Statuses)
	if err != nil {
		return nil, err
	}
	if status != "" {
		of.Statuses = []database.Status{status}
	}
	list, err := o.Databases(r.Context(), of, page.Beyond())
	if err != nil {
		return nil, err
	}
	list, next := ports.Cut(list, page, positionOf)
	t := &web.Table{
		Caption: "Databases of all accounts, the oldest first; deleted ones, too",
		Columns: []web.Column{
			{Title: "Name"}, {Title: "Status"}, {Title: "Owner"}, {Title: "Server"}, {Title: "Size"}, {Title: "Created"},
		},
		Empty:    &web.Empty{Text: "There is no database yet."},
		Filtered: r.Query("q")+r.Query("server")+r.Query("account")+r.Query("status") != "",
		Filter: &web.Form{Action: recordsPath, Get: true, Submit: "Filter", Fields: []*web.Field{
			{Name: "q", Label: "Name, whole", Type: "search", Value: of.Name, Optional: true},
			{Name: "status", Label: "Status", Type: "select", Value: r.Query("status"), Options: options(database.Statuses, "all"),
				Optional: true},
		}},
	}
	kept := url.Values{"q": {of.Name}, "status": {r.Query("status")}}
	for _, bound := range []web.Pair{{Name: "account", Value: string(of.AccountID)}, {Name: "server", Value: string(of.ServerID)}} {
		if bound.Value != "" {
			kept.Set(bound.Name, bound.Value)
			t.Filter.Hidden = append(t.Filter.Hidden, bound)
		}
	}
	for _, d := range list {
		status := web.Cell{Mark: statusMark(d.Status)}
		if m := storageMark(d.StorageStatus); m != nil {
			status.Sub = m.Text
		}
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{Text: d.DisplayName, Href: pathOfRecord(d.ID), Sub: d.Name}, status, nameCell(d.Email, pathOfOwner(d.AccountID)),
			nameCell(d.Server, pathOfServer(d.ServerID)), sizeCell(d.SizeBytes, d.StorageQuota()), web.Time(&d.CreatedAt),
		}})
	}
	turned(t, recordsPath+"?"+kept.Encode(), page, next)
	v := console(databaseTab, "Databases")
	v.Sections = []*web.Section{{ID: "databases", Table: t}}
	return v, nil
}

func positionOf(d ports.DatabaseEntry) ports.Position {
	return ports.Position{At: d.CreatedAt, ID: string(d.ID)}
}

func (s *site) showRecord(r *web.Request, o *operator.Operator) (web.Answer, error) {
	d, err := o.DatabaseDetails(r.Context(), id.DatabaseID(r.Param("id")))
	if err != nil {
		return nil, found(err)
	}
	r.About(string(d.ID))
	verified := web.Words("none")
	if d.LastVerified != nil {
		verified = web.Time(&d.LastVerified.CreatedAt)
	}
	open := web.Words("none")
	if d.Open != nil {
		open = web.Cell{Text: plain(d.Open.Kind), Href: consolePath + orderTab + "/" + string(d.Open.ID)}
	}
	facts := []web.Fact{
		{Name: "Name", Cell: web.MonoText(d.Name)}, {Name: "Owner", Cell: nameCell(d.Email, pathOfOwner(d.AccountID))},
		{Name: "Server", Cell: nameCell(d.Server, pathOfServer(d.ServerID))},
		{Name: "PostgreSQL", Cell: versionCell(d.Record)},
		{Name: "Size", Cell: sizeCell(d.SizeBytes, d.StorageQuota())},
		{Name: "Backup files", Cell: sizeCell(d.InBackups, d.Account.Quotas().BackupBytes)},
		{Name: "Backups", Cell: web.Words(strconv.Itoa(d.Backups))}, {Name: "Last that was verified", Cell: verified},
		{Name: "Open operation", Cell: open}, {Name: "Logins", Cell: web.Words(strings.Join(d.Logins, ", "))},
		{Name: "Connections", Cell: web.Words(strconv.Itoa(d.ConnectionCap))},
		{Name: "Members", Cell: web.Words(strconv.Itoa(d.Members))},
		{Name: "Networks", Cell: web.Words(strconv.Itoa(d.Allowlist))}, {Name: "Created", Cell: web.Time(&d.CreatedAt)},
		{Name: "ID", Cell: web.MonoText(string(d.ID))},
	}
	if d.Deleted != nil {
		facts = append(facts, web.Fact{Name: "Recovery", Cell: web.Words(plain(d.Recovery))})
	}
	v := below(databaseTab, "Databases", d.DisplayName)
	v.Marks, v.Watch = []*web.Mark{statusMark(d.Status)}, nil
	if m := storageMark(d.StorageStatus); m != nil {
		v.Marks = append(v.Marks, m)
	}
	v.Sections = []*web.Section{
		{ID: "database", Facts: facts, Links: []web.Link{
			{Text: "Its activity", Href: consolePath + auditTab + "?database=" + string(d.ID)},
			{Text: "Its operations", Href: consolePath + orderTab + "?state=all&database=" + string(d.ID)},
		}},
		{ID: "enrolments", Title: "Enrolments", Forms: enrolmentForms(d),
			Note: "Routes in limited rollout that the database may use, where their feature is on: " +
				orNone(strings.Join(d.Enrolments, ", ")) + "."},
	}
	if d.WayBack != 0 {
		v.Sections = append(v.Sections, &web.Section{ID: "upgrade", Title: "Upgrade of PostgreSQL", Note: "Until it is confirmed, " +
			"database move takes the database back to a server of the version that it came from.", Forms: []*web.Form{{
			Name: "operator.database.confirm", Action: pathOfRecord(d.ID) + "/confirm-upgrade", Submit: "Confirm the upgrade",
			Fold: "End the way back", Fields: []*web.Field{reasonField()},
		}}})
	}
	return v, nil
}

// versionCell is the version of a database's PostgreSQL, and to which one its way back leads.
func versionCell(r database.Record) web.Cell {
	cell := web.Words(strconv.Itoa(r.PostgresVersion))
	if r.WayBack != 0 {
		cell.Sub = "may go back to " + strconv.Itoa(r.WayBack)
	}
	return cell
}

func (s *site) confirmOfRecord(r *web.Request) (web.Answer, error) {
	db := id.DatabaseID(r.Param("id"))
	r.About(string(db))
	return s.ordered(r, pathOfRecord(db), func(ctx context.Context, o *operator.Operator, by operation.Order) error {
		_, err := o.ConfirmUpgrade(ctx, db, by)
		return err
	})
}

// Whether something is given or taken back.
const (
	give = "give"
	take = "take"
)

func enrolmentForms(d operator.DatabaseDetails) []*web.Form {
	at := pathOfRecord(d.ID)
	routes := []web.Option{{Value: rollout.All, Text: "all"}}
	for _, route := range rollout.Routes() {
		routes = append(routes, web.Option{Value: route, Text: route})
	}
	forms := []*web.Form{{
		Name: "operator.database.enroll", Action: at + "/enroll", Submit: "Change the enrolment", Fold: "Enroll, or withdraw",
		Fields: []*web.Field{
			{Name: "route", Label: "Route", Type: "select", Options: routes},
			{Name: "what", Label: "The database", Type: "select", Options: []web.Option{
				{Value: give, Text: "may use it"}, {Value: take, Text: "may not use it"},
			}},
			reasonField(),
		},
	}}
	if d.RoleModel == database.SingleLogin {
		forms = append(forms, &web.Form{
			Name: "operator.database.roles", Action: at + "/roles", Submit: "Change it", Fold: "Additional roles of a single login",
			Fields: []*web.Field{
				{Name: "what", Label: "Additional roles", Type: "select", Options: []web.Option{
					{Value: give, Text: "can be made"}, {Value: take, Text: "are hidden, and stay as they are"},
				}},
				reasonField(),
			},
		})
	}
	return forms
}

// giving reads whether something is given or taken back. VALIDATION_ERROR on "what".
func giving(r *web.Request) (bool, error) {
	what, err := fault.OneOf("what", r.Field("what"), give, take)
	return what == give, err
}

func (s *site) enroll(r *web.Request) (web.Answer, error) {
	on, err := giving(r)
	if err != nil {
		return nil, err
	}
	return s.change(r, func(ctx context.Context, o *operator.Operator, db id.DatabaseID) error {
		if on {
			return o.Enroll(ctx, db, r.Field("route"))
		}
		return o.Unenroll(ctx, db, r.Field("route"))
	})
}

func (s *site) activateRoles(r *web.Request) (web.Answer, error) {
	on, err := giving(r)
	if err != nil {
		return nil, err
	}
	return s.change(r, func(ctx context.Context, o *operator.Operator, db id.DatabaseID) error {
		if on {
			return o.ActivateLegacyRoles(ctx, db)
		}
		return o.DeactivateLegacyRoles(ctx, db)
	})
}

// change has an operator change something of the database of a page.
func (s *site) change(r *web.Request, do func(context.Context, *operator.Operator, id.DatabaseID) error) (web.Answer, error) {
	db := id.DatabaseID(r.Param("id"))
	r.About(string(db))
	return s.ordered(r, pathOfRecord(db), func(ctx context.Context, o *operator.Operator, _ operation.Order) error {
		return do(ctx, o, db)
	})
}
