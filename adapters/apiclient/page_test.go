package apiclient

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/id"
)

func TestPages(t *testing.T) {
	var asked []string
	client := hear(t, Config{Attempts: 1}, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		switch r.URL.Query().Get("cursor") {
		case "":
			_, _ = fmt.Fprint(w, `{"data":[{"id":"a"},{"id":"b"}],"nextCursor":"one"}`)
		case "one":
			_, _ = fmt.Fprint(w, `{"data":[{"id":"c"}],"nextCursor":"two"}`)
		case "two":
			_, _ = fmt.Fprint(w, `{"data":[],"nextCursor":"three"}`)
		default:
			_, _ = fmt.Fprint(w, `{"data":[{"id":"d"}],"nextCursor":null}`)
		}
	})
	var got []id.DatabaseID
	for d, err := range client.Databases.List().All(t.Context()) {
		check.NoError(t, err)
		got = append(got, d.ID)
	}
	if !slices.Equal(got, []id.DatabaseID{"a", "b", "c", "d"}) || len(asked) != 4 || asked[1] != "cursor=one&limit=100" {
		t.Errorf("%v, asked for %q", got, asked)
	}
	asked = nil
	for range client.Databases.List().All(t.Context()) {
		break
	}
	page, err := client.Databases.List().Page(t.Context(), Page{Limit: 2, Cursor: "one"})
	if err != nil || len(page.Data) != 1 || *page.NextCursor != "two" ||
		!slices.Equal(asked, []string{"limit=100", "cursor=one&limit=2"}) {
		t.Errorf("%+v %v, asked for %q", page, err, asked)
	}
}

// An error ends a list, and so does a server that repeats a page for ever.
func TestListsEnd(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"an error":        func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"a repeated page": func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `{"data":[{}],"nextCursor":"x"}`) },
	} {
		var last error
		n := 0
		for _, err := range hear(t, Config{Attempts: 1}, answer).Activity.List("d").All(t.Context()) {
			if last, n = err, n+1; n > 2 {
				break
			}
		}
		if last == nil || n > 2 {
			t.Errorf("%s: %d entries, then %v", name, n, last)
		}
	}
}
