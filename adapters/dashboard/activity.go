package dashboard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
)

func (s *site) activityPages() []web.Page {
	return []web.Page{web.Get("activity", "/databases/{id}"+activityTab, s.showActivity, "listActivity")}
}

func (s *site) showActivity(r *web.Request) (web.Answer, error) {
	d, err := s.reach(r, account.See)
	if err != nil {
		return nil, err
	}
	page, err := paged(r)
	if err != nil {
		return nil, err
	}
	list, next, err := s.use.Activity.List(r.Context(), d, page)
	if err != nil {
		return nil, err
	}
	t := entryTable("What was done to the database, the latest first", list)
	turned(t, under(d.Record().ID, "activity"), page, next)
	v := frame(d, activityTab, "Activity")
	v.Sections = []*web.Section{{ID: "activity", Table: t}}
	return v, nil
}

// entryTable shows a log.
func entryTable(caption string, list []base.By[audit.Entry]) *web.Table {
	t := &web.Table{
		Caption: caption, Columns: []web.Column{{Title: "When"}, {Title: "What"}, {Title: "By"}, {Title: "Details"}},
	}
	for _, e := range list {
		t.Rows = append(t.Rows, web.Row{Cells: []web.Cell{
			web.Time(&e.What.At), web.Words(plain(e.What.Action)), by(e.What.Actor.Name, e.Person), web.Words(detailWords(e.What.Details)),
		}})
	}
	return t
}

func detailWords(of audit.Details) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		words = append(words, fmt.Sprintf("%s %v", name, of[name]))
	}
	return strings.Join(words, ", ")
}
