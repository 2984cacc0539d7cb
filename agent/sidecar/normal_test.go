package sidecar

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/agent/dumpsql"
)

// reread are texts of pg_dump, each with what it writes of a database that was made from it; PostgreSQL 16.
var reread = map[string][2]string{
	"IN with varchar": {
		`CHECK (((x)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[])))`,
		`CHECK (((x)::text = ANY (ARRAY[('a'::character varying)::text, ('b'::character varying)::text])))`,
	},
	"IN with expressions": {
		`(NOT ((a.x)::text = ANY ((ARRAY[('a'::text)::character varying, lower(y)])::text[])))`,
		`(NOT ((a.x)::text = ANY (ARRAY[(('a'::text)::character varying)::text, (lower(y))::text])))`,
	},
	"in statistics": {
		`(x::text = ANY (ARRAY['a'::character varying, 'b'::character varying]::text[]))`,
		`(x::text = ANY (ARRAY['a'::character varying::text, 'b'::character varying::text]))`,
	},
	"of a type with length": {
		`((ARRAY['a'::text])::character varying(3)[])`, `(ARRAY[('a'::text)::character varying(3)])`,
	},
	"casts of casts": {
		`(((ARRAY['a'::"char"])::character varying[])::s."t t"[])`,
		`(ARRAY[(('a'::"char")::character varying)::s."t t"])`,
	},
	"arrays of arrays": {
		`((ARRAY[ARRAY[a, b], ARRAY[c, d]])::text[])`, `(ARRAY[ARRAY[(a)::text, (b)::text], ARRAY[(c)::text, (d)::text]])`,
	},
	"OR": {
		`((((x)::text = (z)::text) OR ((x)::text = ((x)::text || 'a'::text))) OR ((x)::text = lower((x)::text)))`,
		`(((x)::text = (z)::text) OR ((x)::text = ((x)::text || 'a'::text)) OR ((x)::text = lower((x)::text)))`,
	},
	"AND": {`(((a) AND (b)) AND (c))`, `((a) AND (b) AND (c))`},
	"columns of a child": {
		`CREATE TABLE s.c (c integer DEFAULT f(1, 2), b integer, a integer) INHERITS (s.p);`,
		`CREATE TABLE s.c (a integer, c integer DEFAULT f(1, 2), b integer) INHERITS (s.p);`,
	},
	"bounds of an identity column": {
		`ALTER TABLE t ALTER a ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME q START 1 NO MINVALUE MAXVALUE 2147483647 CACHE 1);`,
		`ALTER TABLE t ALTER a ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME q START 1 NO MINVALUE NO MAXVALUE CACHE 1);`,
	},
	"bounds of one that goes down": {
		`ALTER TABLE t ALTER a ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME q MINVALUE -32768 MAXVALUE -1);`,
		`ALTER TABLE t ALTER a ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME q NO MINVALUE MAXVALUE -1);`,
	},
	"white space": {"SELECT  1 -- one\n FROM\tt;", "SELECT 1 FROM t;"},
}

func TestWhatComesBackInOtherWords(t *testing.T) {
	for name, pair := range reread {
		if a, b := normal(split([]byte(pair[0]))), normal(split([]byte(pair[1]))); a != b {
			t.Errorf("%s:\n%s\n%s", name, a, b)
		}
	}
}

// Nothing else is the same.
func TestWhatIsDifferentStaysSo(t *testing.T) {
	for _, pair := range [][2]string{
		{`((ARRAY['a'])::text[])`, `((ARRAY['a'])::name[])`}, {`((ARRAY['a'])::text[])`, `(ARRAY['a'])`},
		{`((ARRAY['a'])::text[])`, `((ARRAY['b'])::text[])`}, {`((a)::text[])`, `((a)::text)`}, {`(b[1])`, `(b[2])`},
		{`((a OR b) AND c)`, `(a OR (b AND c))`}, {`((a OR b) AND c)`, `(a OR b AND c)`}, {`(a - (b - c))`, `((a - b) - c)`},
		{`(a < - 1)`, `(a <- 1)`}, {`SELECT 'a b';`, `SELECT 'a  b';`}, {`SELECT "A";`, `SELECT "a";`},
		{`(a)`, `[a]`}, {`(a)(b)`, `(a(b))`},
		{`CREATE TABLE s.c (b integer, a integer);`, `CREATE TABLE s.c (a integer, b integer);`},
		{`CREATE TABLE s.c (b integer, a integer) INHERITS (s.p);`, `CREATE TABLE s.c (a bigint, b integer) INHERITS (s.p);`},
		{`CREATE TABLE s.c (a integer) INHERITS (s.p, s.q);`, `CREATE TABLE s.c (a integer) INHERITS (s.q, s.p);`},
		{
			`ALTER TABLE t ALTER a ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME q MAXVALUE 2147483646);`,
			`ALTER TABLE t ALTER a ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME q NO MAXVALUE);`,
		},
		{
			`ALTER TABLE t ALTER a ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME q MAXVALUE 32767 CYCLE);`,
			`ALTER TABLE t ALTER a ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME q NO MAXVALUE);`,
		},
		{`CREATE SEQUENCE q MAXVALUE 32767 CACHE 1;`, `CREATE SEQUENCE q NO MAXVALUE CACHE 1;`},
		{`SELECT E'a';`, `SELECT 'a';`}, {`SELECT B'1';`, `SELECT X'1';`}, {`AS 'BEGIN x; END'`, `AS 'BEGIN  x; END'`},
	} {
		if a, b := normal(split([]byte(pair[0]))), normal(split([]byte(pair[1]))); a == b {
			t.Errorf("%s is the same as %s", pair[0], pair[1])
		}
	}
}

// Two ways to write the blanks of an expression are one.
func FuzzNormal(f *testing.F) {
	for _, pair := range reread {
		f.Add(pair[0])
		f.Add(pair[1])
	}
	f.Add(strings.Repeat("(", 2000))
	f.Add(`ARRAY[ARRAY[,],]::[]::a[]::b[] OR )`)
	f.Fuzz(func(t *testing.T, text string) {
		r := dumpsql.NewReader(strings.NewReader(text+";"), dumpsql.Limits{})
		item, err := r.Next()
		if err != nil || item.Kind != dumpsql.Statement {
			return
		}
		words := split(item.SQL())
		spaced := make([]word, len(words))
		for i, w := range words {
			spaced[i] = word{text: w.text}
		}
		if a, b := normal(words), normal(spaced); a != b {
			t.Errorf("%q and %q", a, b)
		}
	})
}
