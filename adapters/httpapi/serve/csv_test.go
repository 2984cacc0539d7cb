package serve

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// A client gets CSV where it would rather have that than JSON, and the address of the next page.
func TestCSV(t *testing.T) {
	at := ports.Position{At: time.UnixMicro(1_700_000_000_000_000).UTC(), ID: knownID}
	st := open(t, func(c *Config) {
		c.Routes = append(c.Routes, Route{
			Name: "list", Method: "GET", Path: "/api/v1/list", Class: ratelimit.Read,
			Work: WithCSV(Paged(LongList, (*Request).Context,
				func(_, _ context.Context, p ports.Page) (list []int, next *ports.Position, err error) {
					if p.After == nil {
						next = &at
					}
					return []int{p.Limit}, next, nil
				}, strconv.Itoa), func(p wire.Page[string]) ([][]string, *string) {
				return [][]string{{"at"}, p.Data}, p.NextCursor
			}),
		})
	})
	l := st.dial(t)
	get := func(query, accept string) reply {
		l.say(head("GET", "/api/v1/list"+query, anyKey, "Accept: "+accept))
		r := l.hear(cutBy)
		if r.StatusCode != 200 || r.Header.Get("Vary") != "Accept" {
			t.Errorf("%s: %d %v", accept, r.StatusCode, r.Header)
		}
		return r
	}
	for accept, csv := range map[string]bool{
		"text/csv": true, "TEXT/CSV": true, "text/csv, */*;q=0.1": true, "text/html, text/csv;q=0.9": true,
		"application/json, text/csv": false, "*/*": false, "": false, ";, text/plain": false,
	} {
		r := get("?limit=7&limit2=%3E%22", accept)
		kind, text, link := "application/json", `{"data":["7"],"nextCursor":"`+at.Cursor()+`"}`, ""
		if csv {
			kind, text = "text/csv; charset=utf-8; header=present", "at\n7\n"
			link = `</api/v1/list?limit=7&limit2=%3E%22&cursor=` + at.Cursor() + `>; rel="next"`
		}
		if r.text != text || r.Header.Get("Content-Type") != kind || r.Header.Get("Link") != link {
			t.Errorf("%q: %q %v", accept, r.text, r.Header)
		}
	}
	if last := get("?cursor="+at.Cursor(), "text/csv"); last.text != "at\n100\n" || last.Header.Get("Link") != "" {
		t.Errorf("the last page: %q %v", last.text, last.Header)
	}
}
