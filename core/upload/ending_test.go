package upload

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

const (
	head  = "--\n-- PostgreSQL database dump\n--\n\n\\restrict k\n\n-- Dumped by pg_dump version 17\n\nSET lock_timeout = 0;\n"
	table = "CREATE TABLE t (n int);\n"
	tail  = "\n--\n-- PostgreSQL database dump complete\n--\n\n\\unrestrict k\n\n"
)

func TestWhichDumpsAreWhole(t *testing.T) {
	const empty, partial, several = "no statement that makes or fills", "does not end with", "several dumps"
	for name, c := range map[string]struct{ text, said, accepted string }{
		"a dump":                   {head + table + tail, "", ""},
		"with CRLF":                {strings.ReplaceAll(head+table+tail, "\n", "\r\n"), "", ""},
		"of an older version":      {table + "--\n-- PostgreSQL database dump complete\n--\n", "", ""},
		"without a last line end":  {table + "-- PostgreSQL database dump complete", "", ""},
		"two, one after another":   {head + table + tail + head + table + tail, "", ""},
		"nothing":                  {"", empty, empty},
		"blanks":                   {"\n \r\n\t\n", empty, empty},
		"comments":                 {"-- a\n\n-- b", empty, empty},
		"settings":                 {head, empty, empty},
		"a whole dump of nothing":  {head + "SELECT pg_catalog.set_config('search_path', '', false);\n" + tail, empty, empty},
		"cut off":                  {head + table, partial, ""},
		"cut off in its last line": {head + table + "-- PostgreSQL database dump compl", partial, ""},
		"more after it":            {head + table + tail + table, partial, ""},
		"another one begins":       {head + table + tail + head, partial, ""},
		"cut, and a whole one":     {head + table + head + table + tail, several, ""},
		"said within a row":        {head + table + "COPY t FROM stdin;\n" + ClosingLine + "\n\\.\nSELECT 1;\n", partial, ""},
		"said in other words":      {head + table + "-- the PostgreSQL database dump complete\n", partial, ""},
		"of another program":       {"-- MySQL dump 10.13\n" + table + "-- Dump completed on 2026-11-26\n", partial, ""},
		"a long line":              {head + "INSERT INTO t VALUES ('" + strings.Repeat("x", 10_000) + "');\n" + tail, "", ""},
	} {
		e, err := ReadEnding(strings.NewReader(c.text))
		if err != nil {
			t.Fatal(err)
		}
		for accept, said := range map[bool]string{false: c.said, true: c.accepted} {
			err := e.Check(accept)
			ok := fault.Has(err, fault.UploadIncomplete) && strings.Contains(err.Error(), said)
			if (err == nil) != (said == "") || err != nil && !ok {
				t.Errorf("%s, accepted %t: %v, want %q", name, accept, err, said)
			}
		}
		if e.Whole() != (c.said == "") && c.said != empty {
			t.Errorf("%s: whole %t", name, e.Whole())
		}
	}
}
