package apiclient

import (
	"context"
	"errors"
	"iter"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// Page asks for a part of a list. The zero value asks for the beginning: the whole list where a quota bounds it, and else a page.
type Page struct {
	Limit  int
	Cursor string // NextCursor of the page before
}

// on adds the page to a call.
func (p Page) on(r call) call { return r.with("cursor", p.Cursor).with("limit", p.Limit) }

// pageLength is that of the pages which an iterator reads.
const pageLength = 100

var errSamePage = errors.New("apiclient: the list repeats a page")

// all reads page after page, as far as its caller goes. An error is the last that it yields.
func all[T any](list func(Page) (wire.Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for p := (Page{Limit: pageLength}); ; {
			page, err := list(p)
			if err == nil && page.NextCursor != nil && *page.NextCursor == p.Cursor {
				err = errSamePage
			}
			if err != nil {
				yield(none, err)
				return
			}
			for _, entry := range page.Data {
				if !yield(entry, nil) {
					return
				}
			}
			if page.NextCursor == nil {
				return
			}
			p.Cursor = *page.NextCursor
		}
	}
}

// listOf reads one page.
func listOf[T any](ctx context.Context, c *Client, p Page, r call, opts []Option) (wire.Page[T], error) {
	return ask[wire.Page[T]](ctx, c, p.on(r), opts)
}

// allOf reads all of them.
func allOf[T any](ctx context.Context, c *Client, r call, opts []Option) iter.Seq2[T, error] {
	return all(func(p Page) (wire.Page[T], error) { return listOf[T](ctx, c, p, r, opts) })
}
