package spec

import (
	"slices"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

var paging = []Scenario{
	{Name: "every list comes whole or page by page, with every entry once", Play: func(s *Stage) {
		ada, made := s.Owner()
		ada.Creates("two")
		ada.Creates("three")
		for range 3 {
			ada.FinishesBackup(made.ID)
			s.Pass(glance)
		}
		turnsPages(s, "databases", ada.Databases.List(), func(d wire.Database) string { return string(d.ID) })
		turnsPages(s, "backups", ada.Backups.List(made.ID), func(b wire.Backup) string { return string(b.Filename) })
		turnsPages(s, "operations", ada.Operations.List(made.ID), func(o wire.Operation) string { return string(o.ID) })
		turnsPages(s, "activity", ada.Activity.List(made.ID), func(a wire.Activity) string { return string(a.ID) })
	}},
}

// turnsPages reads a list whole, then in pages of every size. name is what identifies an entry.
func turnsPages[T any](s *Stage, what string, list apiclient.Pages[T], name func(T) string) {
	s.Helper()
	names := func(p apiclient.Page) (names []string, next *string) {
		l := must(list.Page(ctx, p))(s)
		for _, e := range l.Data {
			names = append(names, name(e))
		}
		return names, l.NextCursor
	}
	whole, next := names(apiclient.Page{})
	s.That(next == nil && len(whole) >= 3, "the list of %s has %d entries and goes on at %v", what, len(whole), next)
	for limit := 1; limit <= len(whole)+1; limit++ {
		var got []string
		for page := (apiclient.Page{Limit: limit}); ; {
			entries, next := names(page)
			s.That(len(entries) <= limit && len(entries) > 0, "a page of %d %s has %d entries", limit, what, len(entries))
			got = append(got, entries...)
			if next == nil {
				break
			}
			page.Cursor = *next
		}
		s.That(slices.Equal(got, whole), "%s in pages of %d: %v; whole: %v", what, limit, got, whole)
	}
}
