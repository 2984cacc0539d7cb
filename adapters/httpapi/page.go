package httpapi

import (
	"context"
	"strconv"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/ports"
)

// A page's length: the highest limit that a list accepts, and what stands for a missing one in lists without a bound.
const (
	largestPage = 500
	usualPage   = 100
)

// ListKind says how a list comes where the client gives no limit.
type ListKind int

const (
	NoList    ListKind = iota // the route is no list, or one that always comes whole
	WholeList                 // a quota bounds it: all entries
	LongList                  // nothing bounds it: the first page
)

// unlimited is what a missing limit stands for; 0 is everything.
func (k ListKind) unlimited() int {
	if k == LongList {
		return usualPage
	}
	return 0
}

// parameters describe the query of a list in OpenAPI.
func (k ListKind) parameters() []object {
	if k == NoList {
		return nil
	}
	limit := object{"type": "integer", "minimum": 1, "maximum": largestPage}
	meaning := "maximum number of entries; all of them if omitted"
	if usual := k.unlimited(); usual > 0 {
		limit["default"], meaning = usual, "maximum number of entries"
	}
	return []object{
		{"name": "limit", "in": "query", "description": meaning, "schema": limit},
		{
			"name": "cursor", "in": "query", "description": "nextCursor of the previous page",
			"schema": object{"type": "string", "minLength": 1},
		},
	}
}

// page reads limit and cursor. It returns VALIDATION_ERROR naming the one that is wrong; an empty one is wrong too.
func (r *Request) page() (ports.Page, error) {
	p := ports.Page{Limit: r.route.List.unlimited()}
	text, given, err := r.query("limit")
	if err != nil {
		return ports.Page{}, err
	}
	if given {
		p.Limit, err = strconv.Atoi(text)
		if err != nil || p.Limit < 1 || p.Limit > largestPage {
			return ports.Page{}, fault.Invalid("limit", "must be an integer from 1 to %d", largestPage)
		}
	}
	if text, given, err = r.query("cursor"); given && err == nil {
		p.After, err = ports.ParseCursor(text)
	}
	return p, err
}

// paged handles a list: use finds the page that was asked for, of whatever of returns, and view shows each entry.
func paged[T, E, V any](
	of func(*Request) T, use func(context.Context, T, ports.Page) ([]E, *ports.Position, error), view func(E) V,
) Handler {
	return func(r *Request) (Answer, error) {
		page, err := r.page()
		if err != nil {
			return Answer{}, err
		}
		entries, next, err := use(r.Context(), of(r), page)
		out := wire.Page[V]{Data: mapped(entries, view)}
		if next != nil {
			cursor := next.Cursor()
			out.NextCursor = &cursor
		}
		return OK(out), err
	}
}
