package dumpsql_test

import (
	"bytes"
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/agent/dumpsql"
)

var foreign = dumpsql.Foreign{
	Owner: "shop-db", Extension: func(name string) bool { return name == "citext" || name == `"uuid-ossp"` },
}

// harmless are statements that pg_dump writes without owners and privileges, one a line; strange are others, some with a part of
// what is said of them in a comment.
var (
	//go:embed testdata/foreign_harmless.sql
	harmless string
	//go:embed testdata/foreign_strange.sql
	strange string
)

func TestForeign(t *testing.T) {
	for line := range strings.Lines(harmless + "/* as it is */ set client_encoding to utf8;") {
		if why := foreign.Refuse([]byte(strings.TrimSpace(line))); why != "" {
			t.Errorf("%s: %s", line, why)
		}
	}
	for line := range strings.Lines(strange) {
		sql, want, _ := strings.Cut(strings.TrimSpace(line), "  -- ")
		if why := foreign.Refuse([]byte(sql)); why == "" || !strings.Contains(why, want) {
			t.Errorf("%s: %q", sql, why)
		}
	}
}

// What the database has in any case is left out, and a tablespace is noted.
func TestLeftOut(t *testing.T) {
	for sql, want := range map[string]string{
		"CREATE SCHEMA public;": "", "CREATE SCHEMA IF NOT EXISTS public;": "", `create schema "public";`: "",
		"DROP SCHEMA IF EXISTS public;": "", "DROP SCHEMA public;": "", "DROP EXTENSION IF EXISTS plpgsql;": "",
		"COMMENT ON EXTENSION plpgsql IS 'PL/pgSQL';": "", "SET default_tablespace = fast;": "the tablespace fast was left out",
		"SET default_tablespace = 'a b';": "the tablespace 'a b' was left out",
	} {
		if note, skip := foreign.Skip([]byte(sql)); !skip || !strings.HasPrefix(note, want) || (note == "") != (want == "") {
			t.Errorf("%s: %q, %t", sql, note, skip)
		}
	}
	for _, sql := range []string{
		"CREATE SCHEMA publication;", `CREATE SCHEMA "Public";`, "DROP SCHEMA shop;", "DROP EXTENSION citext;", "SELECT 1;", ";",
		"COMMENT ON EXTENSION citext IS 'x';", "COMMENT ON SCHEMA public IS 'x';", "SET default_tablespace = '';", "DROP TABLE public;",
	} {
		if note, skip := foreign.Skip([]byte(sql)); skip || note != "" && !strings.Contains(sql, "''") {
			t.Errorf("%s is left out: %q", sql, note)
		}
	}
}

// What is let through begins as pg_dump's statements do, whatever stands before it.
func FuzzForeign(f *testing.F) {
	for line := range strings.Lines(harmless + strange) {
		f.Add([]byte(line))
	}
	begins := []string{
		"set", "select", "create", "alter", "drop", "comment", "insert", "refresh", "begin", "commit", "copy",
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := dumpsql.NewReader(bytes.NewReader(text), dumpsql.Limits{Statement: 1 << 16})
		for {
			item, err := r.Next()
			if err != nil {
				return
			}
			if item.Kind != dumpsql.Statement && item.Kind != dumpsql.CopyStart {
				continue
			}
			sql := string(item.SQL())
			why := foreign.Refuse([]byte(sql))
			if again := foreign.Refuse([]byte("/* DO */ -- GRANT\n" + sql)); again != why {
				t.Errorf("%q: %q, and after a comment: %q", sql, why, again)
			}
			for _, word := range dumpsql.Tokens([]byte(sql)) {
				if why == "" && !slices.Contains(begins, strings.ToLower(word)) {
					t.Errorf("%q is let through", sql)
				}
				break
			}
		}
	})
}
