package httpapi

import (
	"strconv"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/ports"
)

// largestPage is the highest limit that a list accepts.
const largestPage = 500

// PageParameters document the query of every list.
var PageParameters = []Parameter{
	{Name: "limit", Meaning: "at most so many entries, 1-500; without it the whole list", Integer: true},
	{Name: "cursor", Meaning: "nextCursor of the page before"},
}

// Listed is the answer of a list. NextCursor is null on the last page.
type Listed[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"nextCursor"`
}

// Page reads limit and cursor. It returns VALIDATION_ERROR naming the one that is wrong.
func (r *Request) Page() (p ports.Page, err error) {
	if text := r.Query("limit"); text != "" {
		p.Limit, err = strconv.Atoi(text)
		if err != nil || p.Limit < 1 || p.Limit > largestPage {
			return ports.Page{}, fault.Invalid("limit", "must be an integer of 1 to %d", largestPage)
		}
	}
	if text := r.Query("cursor"); text != "" {
		p.After, err = ports.ParseCursor(text)
	}
	return p, err
}

// Paged answers 200 with one page: what the list shows of each entry, and where the next page begins.
func Paged[E, V any](entries []E, view func(E) V, next *ports.Position) Answer {
	out := Listed[V]{Data: mapped(entries, view)}
	if next != nil {
		cursor := next.Cursor()
		out.NextCursor = &cursor
	}
	return OK(out)
}
