package spec

import "slices"

var paging = []Scenario{
	{Name: "every list comes whole or page by page, with every entry once", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		ada.Creates("two")
		ada.Creates("three")
		for range 3 {
			ada.FinishesBackup(made.ID)
			s.Pass(glance)
		}
		s.turnsPages("databases", ids(ada.Databases, func(d Database) string { return d.ID }))
		s.turnsPages("backups", ids(ofDatabase(ada.Backups, made.ID), func(b Backup) string { return b.Filename }))
		s.turnsPages("operations", ids(ofDatabase(ada.Operations, made.ID), func(o Operation) string { return o.ID }))
		s.turnsPages("activity", ids(ofDatabase(ada.API.Activity, made.ID), func(a Activity) string { return a.ID }))
	}},
	{Name: "a list that no quota bounds comes in pages of 100 where no limit is given",
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			made := ada.Creates("orders")
			writer := ada.API
			for n := range 100 {
				if n%s.Writes == 0 {
					writer = s.WithKey(ada.Account) // no key may write so much at once
				}
				_, err := writer.SetEnvironment(made.ID, [...]*string{new("staging"), nil}[n%2])
				s.OK(err)
			}
			first, err := ada.API.Activity(made.ID, Page{})
			s.OK(err)
			s.That(len(first.Data) == 100 && first.NextCursor != nil, "the first page has %d entries", len(first.Data))
			rest, err := ada.API.Activity(made.ID, Page{Cursor: *first.NextCursor})
			s.OK(err)
			s.That(len(rest.Data) == 1 && rest.NextCursor == nil, "the rest is %+v", rest.Data)
		}},
	{Name: "a limit or a cursor that makes no sense is refused", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		for _, path := range []string{
			"/api/v1/databases", "/api/v1/databases/" + made.ID + "/backups", "/api/v1/databases/" + made.ID + "/operations",
			"/api/v1/databases/" + made.ID + "/activity", "/api/v1/webhooks",
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

// list is any list, by what identifies its entries.
type list func(p Page) (entries []string, next *string, err error)

func ids[T any](get func(Page) (Listed[T], error), id func(T) string) list {
	return func(p Page) (entries []string, next *string, err error) {
		l, err := get(p)
		for _, e := range l.Data {
			entries = append(entries, id(e))
		}
		return entries, l.NextCursor, err
	}
}

func ofDatabase[T any](get func(string, Page) (Listed[T], error), id string) func(Page) (Listed[T], error) {
	return func(p Page) (Listed[T], error) { return get(id, p) }
}

// turnsPages reads the list whole, then in pages of every size.
func (s *Stage) turnsPages(what string, get list) {
	s.Helper()
	whole, next, err := get(Page{})
	s.OK(err)
	s.That(next == nil && len(whole) >= 3, "the list of %s has %d entries and goes on at %v", what, len(whole), next)
	for limit := 1; limit <= len(whole)+1; limit++ {
		var got []string
		for page := (Page{Limit: limit}); ; {
			entries, next, err := get(page)
			s.OK(err)
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
