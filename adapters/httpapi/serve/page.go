package serve

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
	text, given, err := r.Query("limit")
	if err != nil {
		return ports.Page{}, err
	}
	if given {
		p.Limit, err = strconv.Atoi(text)
		if err != nil || p.Limit < 1 || p.Limit > largestPage {
			return ports.Page{}, fault.Invalid("limit", "must be an integer from 1 to %d", largestPage)
		}
	}
	if text, given, err = r.Query("cursor"); given && err == nil {
		p.After, err = ports.ParseCursor(text)
	}
	return p, err
}

// Paged is work that answers a page of a list: use finds the page that was asked for, of whatever of returns, and view shows each
// entry.
func Paged[T, E, V any](
	list ListKind, of func(*Request) T, use func(context.Context, T, ports.Page) ([]E, *ports.Position, error), view func(E) V,
) Work {
	return PagedOf(list, func(r *Request) (T, error) { return of(r), nil }, use, view)
}

// PagedOf is Paged where there may be no list for the caller.
func PagedOf[T, E, V any](
	list ListKind, find func(*Request) (T, error), use func(context.Context, T, ports.Page) ([]E, *ports.Position, error),
	view func(E) V,
) Work {
	work := OK(func(r *Request) (out wire.Page[V], err error) {
		of, err := find(r)
		if err != nil {
			return out, err
		}
		page, err := r.page()
		if err != nil {
			return out, err
		}
		entries, next, err := use(r.Context(), of, page)
		out.Data = make([]V, len(entries))
		for i, e := range entries {
			out.Data[i] = view(e)
		}
		if next != nil {
			out.NextCursor = new(next.Cursor())
		}
		return out, err
	})
	work.List = list
	return work
}
