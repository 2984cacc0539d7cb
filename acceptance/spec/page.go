package spec

import (
	"slices"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
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
	{Name: "a list that no quota bounds comes in pages of 100 where no limit is given",
		Play: func(s *Stage) {
			ada, made := s.Owner()
			writer := ada
			for n := range 100 {
				if n%s.Writes == 0 {
					writer = s.WithKey(ada.Account) // no key may write so much at once
				}
				must(writer.SetEnvironment(made.ID, [...]*database.Environment{new(database.Staging), nil}[n%2]))(s)
			}
			first := must(ada.Activity.List(made.ID).Page(ctx, apiclient.Page{}))(s)
			s.That(len(first.Data) == 100 && first.NextCursor != nil, "the first page has %d entries", len(first.Data))
			rest := must(ada.Activity.List(made.ID).Page(ctx, apiclient.Page{Cursor: *first.NextCursor}))(s)
			s.That(len(rest.Data) == 1 && rest.NextCursor == nil, "the rest is %+v", rest.Data)
		}},
	{Name: "a limit or a cursor that makes no sense is refused", Play: func(s *Stage) {
		ada, made := s.Owner()
		for _, path := range []string{
			"/api/v1/databases", made.path("/backups"), made.path("/operations"),
			made.path("/activity"), "/api/v1/webhooks",
		} {
			for query, field := range map[string]string{
				"limit=0": "limit", "limit=501": "limit", "limit=x": "limit", "limit=-1": "limit", "limit=": "limit",
				"cursor=x": "cursor", "cursor=MS4x%00": "cursor", "cursor=": "cursor", "limit=5&cursor=": "cursor",
			} {
				answer := s.sends(Request{Method: "GET", Path: path + "?" + query, Key: ada.Key.Text})
				s.Refused(answer.refusal(), "VALIDATION_ERROR", field)
			}
			s.That(s.sends(Request{Method: "GET", Path: path + "?limit=500", Key: ada.Key.Text}).Status == 200, "500 is too much")
		}
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
