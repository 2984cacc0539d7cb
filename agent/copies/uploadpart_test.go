package copies_test

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/fault"
	core "github.com/pgherd/pgherd/core/upload"
)

// What may be a part of a dump only does not take the place of a database, unless that is accepted. What holds nothing never does.
func TestUploadsThatMayBeAPart(t *testing.T) {
	const (
		tail = "--\n" + core.ClosingLine + "\n--\n\n"
		sets = "--\n-- PostgreSQL database dump\n--\n\n\\restrict k\n\nSET statement_timeout = 0;\n" +
			"SELECT pg_catalog.set_config('search_path', '', false);\n"
		table = "CREATE TABLE public.t (v text);\n"
		said  = "COPY public.t (v) FROM stdin;\n" + core.ClosingLine + "\n\\.\n"
		open  = "\\unrestrict k\n"
	)
	const empty, part, noDump = "no statement that makes", "does not end with pg_dump's closing line", "dump ends in the middle"
	w := newWorld(t)
	for what, c := range map[string]struct{ text, said, accepted string }{
		"nothing":                      {"", empty, empty},
		"settings and a closing line":  {sets + tail + open, empty, empty},
		"cut between statements":       {sets + table + open, part, ""},
		"cut within rows":              {table + "COPY public.t (v) FROM stdin;\n" + core.ClosingLine + "\n", noDump, noDump},
		"the closing line in a row":    {table + said, part, ""},
		"the closing line in a string": {table + "INSERT INTO public.t VALUES ('\n" + tail + "');\n", part, ""},
		"the closing line in a block":  {table + "/*\n" + tail + "*/\n", part, ""},
		"more after the closing line":  {table + tail + "CREATE TABLE public.u (v text);\n", part, ""},
		"a cut one and a whole one":    {sets + table + open + sets + "CREATE TABLE public.u (v text);\n" + tail + open, "several dumps", ""},
		"a whole one":                  {sets + table + said + tail + open, "", ""},
		"a whole one with CRLF":        {strings.ReplaceAll(sets+table+tail+open, "\n", "\r\n"), "", ""},
	} {
		for accept, said := range map[bool]string{false: c.said, true: c.accepted} {
			if said == "" && accept && c.said == "" {
				continue
			}
			req := w.uploadedAs(backuptest.Packed(c.text))
			req.Source.AcceptIncomplete = accept
			loaded, err := w.Agent.Copies.Load(t.Context(), req, backuptest.Unseen)
			code := fault.UploadIncomplete
			if said == noDump {
				code = fault.BackupNotVerified
			}
			switch {
			case said != "" && (!fault.Has(err, code) || !strings.Contains(err.Error(), said)):
				t.Errorf("%s, accepted %t: %v", what, accept, err)
			case said == "" && (err != nil || (len(loaded.Notes) == 1) != accept):
				t.Errorf("%s, accepted %t: %v, noted %q", what, accept, err, loaded.Notes)
			case said == "":
				check.NoError(t, w.Agent.Copies.Discard(t.Context(), backuptest.OperationID))
			}
		}
	}
	w.LeavesNothing()
}
