package dashboard

import (
	"fmt"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

func (s *site) overviewPages() []web.Page {
	const one = "/databases/{id}"
	return []web.Page{
		web.Get("database", one, s.showOverview, "getDatabase", "listOperations"),
		web.Get("operation", "/operations/{id}", s.showOperation, "getOperation"),
		web.Post("operation.cancel", "/operations/{id}/cancel", "/operations/{id}", s.cancelOperation, "cancelOperation").
			Says("The operation is asked to end."),
	}
}

func (s *site) showOverview(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.See)
	if err != nil {
		return nil, err
	}
	record, err := s.use.Databases.Get(r.Context(), d)
	if err != nil {
		return nil, err
	}
	backups, _, err := s.use.Backups.List(r.Context(), d, ports.Page{Limit: 1})
	if err != nil {
		return nil, err
	}
	ongoing, _, err := s.use.Operations.List(r.Context(), d, ports.Page{Limit: 5})
	if err != nil {
		return nil, err
	}
	backup := web.Cell{Text: "none yet"}
	if len(backups) > 0 {
		backup = web.Time(&backups[0].CreatedAt)
		switch {
		case backups[0].VerifiedAt != nil:
			backup.Sub = "verified"
		case backups[0].DamagedAt != nil:
			backup.Sub = "damaged"
		default:
			backup.Sub = "not verified"
		}
	}
	v := frame(d, overviewTab, "")
	v.Sections = []*web.Section{
		{ID: "facts", Facts: []web.Fact{
			{Name: "Size", Cell: sizeCell(record.SizeBytes, record.StorageQuota())},
			{Name: "Latest backup", Cell: backup},
			{Name: "Backups", Cell: web.Words(scheduleWords(record.Schedule))},
			{Name: "Environment", Cell: web.Words(orNone(plain(record.Environment)))},
			{Name: "PostgreSQL", Cell: versionCell(record)},
			{Name: "Your role", Cell: web.Words(string(d.Standing()))},
			{Name: "Created", Cell: web.Time(&record.CreatedAt)},
			{Name: "ID", Cell: web.MonoText(string(record.ID))},
		}},
		operationSection(ongoing),
		{Title: "Connect", Note: "Every connection is encrypted, and the server's name is verified.", Codes: connections(record,
			record.Name, "")},
	}
	if upgraded := upgradeSection(d); upgraded != nil {
		v.Sections = append([]*web.Section{upgraded}, v.Sections...)
	}
	return v, nil
}

func scheduleWords(s database.Schedule) string {
	for _, o := range schedules() {
		if o.Value == string(s) {
			return o.Text
		}
	}
	return string(s)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func operationSection(list []operation.Operation) *web.Section {
	t := &web.Table{
		Caption: "What is done to the database",
		Columns: []web.Column{{Title: "What"}, {Title: "Status"}, {Title: "Progress"}, {Title: "Asked for"}, {Title: "Ended"}},
		Empty:   &web.Empty{Text: "Nothing was done yet."},
	}
	for _, o := range list {
		status := web.Cell{Mark: operationMark(o)}
		if o.Status == operation.Failed {
			status.Sub = o.Failure().Message
		}
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			{Text: plain(o.Kind), Href: "/operations/" + string(o.ID)}, status, progressCell(o), web.Time(&o.CreatedAt),
			web.Time(o.FinishedAt),
		}})
	}
	return &web.Section{ID: "operations", Title: "Operations", Table: t}
}

func (s *site) showOperation(r *web.Request) (web.Answer, error) {
	found, err := s.use.Operations.Reach(r.Context(), r.Caller, id.OperationID(r.Param("id")), account.See)
	if err != nil {
		return nil, err
	}
	o := found.Operation()
	r.About(string(o.DatabaseID))
	v := &web.View{
		Title: "Operation: " + plain(o.Kind), Marks: []*web.Mark{operationMark(o)}, Trail: trailOf(found.Reached),
		Watch: []id.DatabaseID{o.DatabaseID},
	}
	section := &web.Section{ID: "operation", Facts: []web.Fact{
		{Name: "Status", Cell: web.Cell{Mark: operationMark(o)}},
		{Name: "Stage", Cell: web.Words(orNone(plain(o.Stage)))},
		{Name: "Asked for", Cell: web.Time(&o.CreatedAt)},
		{Name: "Begun", Cell: web.Time(o.StartedAt)},
		{Name: "Ended", Cell: web.Time(o.FinishedAt)},
		{Name: "ID", Cell: web.MonoText(string(o.ID))},
		{Name: "Request", Cell: web.MonoText(o.RequestID)},
	}}
	if o.Status == operation.Running {
		section.Facts = append(section.Facts, web.Fact{Name: "Progress", Cell: progressCell(o)})
	}
	if o.Status == operation.Failed {
		f := o.Failure()
		section.Alert = &web.Alert{Text: f.Message, Code: string(f.Code)}
	}
	if len(o.Result) > 0 && string(o.Result) != "null" {
		section.Codes = []web.Code{{Label: "Result", Text: string(o.Result)}}
	}
	if !o.Status.Final() {
		section.Forms = []*web.Form{button("operation.cancel", fmt.Sprintf("/operations/%s/cancel", o.ID), "Cancel")}
	}
	v.Sections = []*web.Section{section}
	return v, nil
}

func trailOf(d access.Reached) []web.Link {
	record := d.Record()
	trail := []web.Link{{Text: "Databases", Href: "/"}}
	if record.Status.Gone() {
		return append(trail, web.Link{Text: "Deleted", Href: deletedPath})
	}
	return append(trail, web.Link{Text: record.DisplayName, Href: pathOf(record.ID)})
}

func (s *site) cancelOperation(r *web.Request) (web.Answer, error) {
	op := id.OperationID(r.Param("id"))
	found, err := s.use.Operations.Reach(r.Context(), r.Caller, op, account.See)
	if err != nil {
		return nil, err
	}
	_, err = s.use.Operations.Cancel(r.Context(), found)
	return web.Redirect{To: "/operations/" + string(op)}, err
}
