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

// pageLength is that of the pages which an iterator reads.
const pageLength = 100

var errSamePage = errors.New("apiclient: the list repeats a page")

// Pages are those of a list.
type Pages[T any] struct {
	c *Client
	r call
}

// Page reads one page.
func (l Pages[T]) Page(ctx context.Context, p Page, opts ...Option) (wire.Page[T], error) {
	return ask[wire.Page[T]](ctx, l.c, l.r.with("cursor", p.Cursor).with("limit", p.Limit), opts)
}

// All reads page after page, as far as its caller goes. An error is the last that it yields.
func (l Pages[T]) All(ctx context.Context, opts ...Option) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for p := (Page{Limit: pageLength}); ; {
			page, err := l.Page(ctx, p, opts...)
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
