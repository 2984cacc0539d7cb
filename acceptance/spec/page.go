package spec

import (
	"context"
	"slices"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
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
		turnsPages(s, "databases", ada.Databases.List, func(d wire.Database) string { return string(d.ID) })
		turnsPages(s, "backups", ofDatabase(ada.Backups.List, made), func(b wire.Backup) string { return string(b.Filename) })
		turnsPages(s, "operations", ofDatabase(ada.Operations.List, made), func(o wire.Operation) string { return string(o.ID) })
		turnsPages(s, "activity", ofDatabase(ada.Activity.List, made), func(a wire.Activity) string { return string(a.ID) })
	}},
}

// lister is a call that reads one page.
type lister[T any] func(context.Context, apiclient.Page, ...apiclient.Option) (wire.Page[T], error)

func ofDatabase[T any](
	get func(context.Context, id.DatabaseID, apiclient.Page, ...apiclient.Option) (wire.Page[T], error), of Created,
) lister[T] {
	return func(ctx context.Context, p apiclient.Page, opts ...apiclient.Option) (wire.Page[T], error) {
		return get(ctx, of.ID, p, opts...)
	}
}

// turnsPages reads a list whole, then in pages of every size. name is what identifies an entry.
func turnsPages[T any](s *Stage, what string, get lister[T], name func(T) string) {
	s.Helper()
	names := func(p apiclient.Page) (names []string, next *string) {
		l := must(get(ctx, p))(s)
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
