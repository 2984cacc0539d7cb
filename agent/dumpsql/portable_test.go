package dumpsql_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/agent/dumpsql"
)

type seen struct {
	Tables    []string
	Columns   [][]string
	Lines     string
	Sequences []dumpsql.Sequence
	Objects   []uint32
	Content   string
	Bytes     int
}

func portable(t *testing.T, dump string) (string, seen) {
	t.Helper()
	var out bytes.Buffer
	var s seen
	p := dumpsql.Portable{
		Known: func(name string) bool { return name != "transaction_timeout" },
		Data:  func(n int) { s.Bytes += n },
		Table: func(name string, columns []string) {
			s.Tables, s.Columns = append(s.Tables, name), append(s.Columns, columns)
		},
		Lines:       func(text []byte) { s.Lines += string(text) },
		Sequence:    func(q dumpsql.Sequence) { s.Sequences = append(s.Sequences, q) },
		LargeObject: func(oid uint32) { s.Objects = append(s.Objects, oid) },
		Content:     func(data []byte) { s.Content += string(data) },
	}
	if err := p.Copy(&out, strings.NewReader(dump)); err != nil {
		t.Fatal(err)
	}
	return out.String(), s
}

func TestPortableStatements(t *testing.T) {
	for _, c := range []struct{ dump, want string }{
		{"SET lock_timeout = 0;\nSET transaction_timeout = 0;\nSET x = 1;",
			"SET lock_timeout = 0;\n\nSET x = 1;"},
		{"SET client_encoding = 'UTF8';\nSET lc_monetary = 'x';\nSET x = 1;",
			"SET client_encoding = 'UTF8';\nSET lc_monetary = 'C';\nSET x = 1;"},
		{`CREATE POLICY p ON public.t TO a, "USING x" USING ((a = 1));`,
			`CREATE POLICY p ON public.t USING ((a = 1));`},
		{`CREATE POLICY p ON t FOR INSERT TO a WITH CHECK (b);`,
			`CREATE POLICY p ON t FOR INSERT WITH CHECK (b);`},
		{`CREATE POLICY p ON t AS RESTRICTIVE FOR SELECT TO a;`,
			`CREATE POLICY p ON t AS RESTRICTIVE FOR SELECT;`},
		{`CREATE POLICY "to" ON "to"."to" USING ((a ~ ' TO x '::text));`,
			`CREATE POLICY "to" ON "to"."to" USING ((a ~ ' TO x '::text));`},
		{"-- c\n\nCREATE POLICY p ON t TO PUBLIC USING (EXISTS (SELECT to FROM b));\n",
			"-- c\n\nCREATE POLICY p ON t USING (EXISTS (SELECT to FROM b));\n"},
		{"COPY t FROM stdin;\nSET transaction_timeout = 0;\n\\.\n",
			"COPY t FROM stdin;\nSET transaction_timeout = 0;\n\\.\n"},
		{"CREATE PROCEDURE a.begin(INOUT begin int) AS $$ a.begin $$;",
			`CREATE PROCEDURE a."begin"(INOUT "begin" int) AS $$ a.begin $$;`},
		{"CREATE FUNCTION a.begin(b int) RETURNS int BEGIN ATOMIC SELECT begin.b FROM s.begin begin WHERE begin.a = 'begin'; END;",
			`CREATE FUNCTION a."begin"(b int) RETURNS int BEGIN ATOMIC SELECT "begin".b FROM s."begin" "begin" ` +
				`WHERE "begin".a = 'begin'; END;`},
		{"SELECT 'SET transaction_timeout = 0;';",
			"SELECT 'SET transaction_timeout = 0;';"},
	} {
		if got, s := portable(t, c.dump); got != c.want || s.Bytes != len(c.dump) {
			t.Errorf("%s\nbecame %s\nwanted %s (%d bytes told of %d)", c.dump, got, c.want, s.Bytes, len(c.dump))
		}
	}
}

func TestPortableTellsWhatItSees(t *testing.T) {
	_, got := portable(t, "COPY public.a (x, \"from\", \"(\"\"y,\") FROM stdin;\n1\t2\t3\n\n\\.\n"+
		"COPY \"s p\".\"q\"\"(\"  FROM stdin;\n\\.\n"+
		"SELECT pg_catalog.lo_open('4294967295', 131072);\nSELECT pg_catalog.lowrite(0, '\\x00');\n"+
		"SELECT pg_catalog.lowrite(0, '\\x');\nSELECT pg_catalog.lowrite(0, '\\x27ff');\nSELECT pg_catalog.lo_close(0);\n"+
		"SELECT pg_catalog.lo_open('7', 131072);\n"+
		"SELECT pg_catalog.setval('public.s', 5, true);\nSELECT pg_catalog.setval('\"o''s\".\"B\"', -7, false);\n"+
		"SELECT pg_catalog.setval(E'\"a\\\\\\\\b\"', 1, true);\nSELECT pg_catalog.set_config('search_path', '', false);\n")
	got.Bytes = 0
	want := seen{
		Tables: []string{"public.a", `"s p"."q""("`}, Columns: [][]string{{"x", "from", `("y,`}, nil}, Lines: "1\t2\t3\n\n",
		Sequences: []dumpsql.Sequence{
			{Name: "public.s", Last: 5, Called: true}, {Name: `"o's"."B"`, Last: -7}, {Name: `"a\\b"`, Last: 1, Called: true},
		},
		Objects: []uint32{4294967295, 7}, Content: "\x00'\xff",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A digest of what is not understood would be wrong: the dump fails then.
func TestLargeObjectsInAnotherFormAreRefused(t *testing.T) {
	for _, dump := range []string{
		"SELECT pg_catalog.lowrite(0, 'text');", `SELECT pg_catalog.lowrite(0, E'\\\\x00');`, `SELECT pg_catalog.lowrite(0, '\x0');`,
		`SELECT pg_catalog.lowrite(1, '\x00');`, `SELECT pg_catalog.lowrite(0, '\x00' || '\x01');`,
		"SELECT pg_catalog.lo_open('4294967296', 131072);", "SELECT pg_catalog.lo_open('', 131072);",
	} {
		p := dumpsql.Portable{Data: func(int) {}, LargeObject: func(uint32) {}, Content: func([]byte) {}}
		var at *dumpsql.SyntaxError
		if err := p.Copy(io.Discard, strings.NewReader("\n"+dump)); !errors.As(err, &at) {
			t.Errorf("%s: %v", dump, err)
		}
	}
}

func BenchmarkPortable(b *testing.B) {
	row := "12345\tSomeone Else\tsomeone@example.org\t2026-03-01 12:00:00+00\tsome words of a longer text\n"
	dump := "COPY public.t (a) FROM stdin;\n" + strings.Repeat(row, 1<<17) + "\\.\n"
	b.SetBytes(int64(len(dump)))
	p := dumpsql.Portable{
		Known: func(string) bool { return true }, Data: func(int) {}, Table: func(string, []string) {}, Lines: func([]byte) {},
	}
	for b.Loop() {
		if err := p.Copy(new(discard), strings.NewReader(dump)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInserts(b *testing.B) {
	dump := strings.Repeat("INSERT INTO public.t (a, b) VALUES (12345, 'Someone Else', 'someone@example.org', NULL, 1.5);\n", 1<<15)
	b.SetBytes(int64(len(dump)))
	for b.Loop() {
		if _, _, err := read(strings.NewReader(dump), dumpsql.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Whatever a dump holds, making it portable ends, and doing so twice is the same as once.
func FuzzPortable(f *testing.F) {
	for _, seed := range []string{
		"CREATE POLICY p ON t TO a USING (b);", "CREATE POLICY TO;", "CREATE POLICY p TO to USING", "SET a = 1;",
		"SET transaction_timeout=;",
		"SELECT pg_catalog.setval(;", "SELECT pg_catalog.setval('a', -, -, 1, 2);", "SELECT pg_catalog.setval('a',,,,,);",
		"SET client_encoding = 'UTF8';\nSET lc_monetary = 'x';",
		"SELECT pg_catalog.lo_open('1');SELECT pg_catalog.lowrite(0, '\\x00');",
		"COPY FROM stdin;\n\\.\n", "COPY a.\"b\" FROM stdin;\n\\.\n", "CREATE FUNCTION a.begin.begin.begin;",
	} {
		f.Add([]byte(seed))
	}
	p := dumpsql.Portable{
		Known: func(name string) bool { return name != "transaction_timeout" }, Data: func(int) {},
		Table: func(name string, _ []string) { dumpsql.Canonical(name) }, Lines: func([]byte) {},
		Sequence: func(s dumpsql.Sequence) { dumpsql.Canonical(s.Name) }, LargeObject: func(uint32) {}, Content: func([]byte) {},
	}
	f.Fuzz(func(t *testing.T, dump []byte) {
		var once, twice bytes.Buffer
		if p.Copy(&once, bytes.NewReader(dump)) != nil {
			return
		}
		if err := p.Copy(&twice, bytes.NewReader(once.Bytes())); err != nil {
			t.Fatalf("%q became %q: %v", dump, once.Bytes(), err)
		}
		if !bytes.Equal(once.Bytes(), twice.Bytes()) {
			t.Fatalf("once %q, twice %q", once.Bytes(), twice.Bytes())
		}
	})
}
