package copies_test

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/fault"
	core "github.com/pgherd/pgherd/core/upload"
)

// What may be a part of a dump only takes no database's place, unless that is accepted. What holds nothing never does.
func TestUploadsThatMayBeAPart(t *testing.T) {
	const (
		tail = "--\n" + core.ClosingLine + "\n--\n\n"
		sets = "--\n-- PostgreSQL database dump\n--\n\n\\restrict k\n\nSET statement_timeout = 0;\n" +
			"SELECT pg_catalog.set_config('search_path', '', false);\n"
		table = "CREATE TABLE public.t (v text);\n"
		other = "CREATE TABLE public.u (v text);\n"
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
		"more after the closing line":  {table + tail + other, part, ""},
		"a cut one and a whole one":    {sets + table + open + sets + other + tail + open, "several dumps", ""},
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

// What dumps that people have begin with, or hold besides, neither ends their restore nor changes it.
func TestDumpsAsPeopleHaveThem(t *testing.T) {
	const (
		table = "CREATE TABLE public.t (v text);\n"
		of18  = "-- Dumped from database version 18.1 (Debian 18.1-1)\n"
	)
	w := newWorld(t)
	for what, c := range map[string]struct{ text, said string }{
		"a byte order mark":           {core.Mark + table, ""},
		"schema public":               {"CREATE SCHEMA public;\nCOMMENT ON SCHEMA public IS 'standard';\n" + table, ""},
		"schema public is made anew":  {"DROP SCHEMA IF EXISTS public;\nCREATE SCHEMA public;\n" + table, ""},
		"plpgsql":                     {"CREATE EXTENSION IF NOT EXISTS plpgsql;\nCOMMENT ON EXTENSION plpgsql IS 'x';\n" + table, ""},
		"a tablespace":                {"SET default_tablespace = fast;\n" + table, "the tablespace fast was left out"},
		"nothing but schema public":   {"CREATE SCHEMA public;\n", "no statement that makes"},
		"an extension is missing":     {"CREATE TABLE public.t (v public.citext);\n", "it belongs to the extension citext"},
		"only data":                   {"COPY public.t (v) FROM stdin;\na\n\\.\n", "--data-only"},
		"a constraint of 18":          {of18 + "CREATE TABLE public.t (v int, NOT NULL v);\n", "18.1, and this server has 16"},
		"a virtual column":            {of18 + "CREATE TABLE public.t (v int, w int GENERATED ALWAYS AS (v));\n", "of PostgreSQL 18.1"},
		"statistics of the planner":   {table + "SELECT * FROM pg_catalog.pg_restore_relation_stats('v', 1);\n", "--no-statistics"},
		"an extension is not offered": {"CREATE EXTENSION postgis;\n" + table, "no trusted extension postgis, so it is not offered"},
	} {
		loaded, err := w.Agent.Copies.Load(t.Context(), w.uploaded(c.text), backuptest.Unseen)
		if err == nil {
			check.NoError(t, w.Agent.Copies.Discard(t.Context(), backuptest.OperationID))
		}
		got := strings.Join(loaded.Notes, "; ")
		if err != nil {
			got = err.Error()
		}
		if (got == "") != (c.said == "") || !strings.Contains(got, c.said) {
			t.Errorf("%s: %q, want %q", what, got, c.said)
		}
	}
	w.LeavesNothing()
}
