package serve

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"mime"
	"strings"

	"github.com/valyala/fasthttp"
)

// CSV is the content type of tables.
const CSV = "text/csv"

// WithCSV is work that answers a table to a client which would rather have that than JSON. The first row of a table has the names
// of its columns; next is the cursor of the page that follows, which the header Link leads to.
func WithCSV[T any](w Work, table func(T) (rows [][]string, next *string)) Work {
	handle := w.Handle
	w.CSV = true
	w.Handle = func(r *Request) (Answer, error) {
		a, err := handle(r)
		if err != nil {
			return a, err
		}
		h := &r.raw.Response.Header
		h.Set(fasthttp.HeaderVary, fasthttp.HeaderAccept)
		if !prefersCSV(string(r.raw.Request.Header.Peek(fasthttp.HeaderAccept))) {
			return a, nil
		}
		rows, next := table(a.Body.(T)) //nolint:forcetypeassert // what the work documents
		if next != nil {
			h.Set(fasthttp.HeaderLink, fmt.Sprintf(`<%s>; rel="next"`, r.nextPage(*next)))
		}
		var text bytes.Buffer
		err = csv.NewWriter(&text).WriteAll(rows)
		return Answer{Status: a.Status, CSV: text.Bytes()}, err
	}
	return w
}

// prefersCSV reports whether a header Accept names CSV before what JSON is of.
func prefersCSV(accept string) bool {
	for each := range strings.SplitSeq(accept, ",") {
		switch kind, _, _ := mime.ParseMediaType(each); kind {
		case CSV:
			return true
		case "application/json", "application/*", "*/*":
			return false
		}
	}
	return false
}

// nextPage is the address of the request with another cursor.
func (r *Request) nextPage(cursor string) string {
	query := fasthttp.AcquireArgs()
	defer fasthttp.ReleaseArgs(query)
	r.raw.QueryArgs().CopyTo(query)
	query.Set("cursor", cursor)
	return string(r.raw.Path()) + "?" + query.String()
}
