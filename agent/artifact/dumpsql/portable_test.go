package dumpsql_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/agent/artifact/dumpsql"
)

type seen struct {
	Tables    []string
	Sequences []dumpsql.Sequence
	Bytes     int
}

func portable(t *testing.T, dump string) (string, seen) {
	t.Helper()
	var out bytes.Buffer
	var s seen
	p := dumpsql.Portable{
		Known:    func(name string) bool { return name != "transaction_timeout" },
		Table:    func(name string) { s.Tables = append(s.Tables, name) },
		Data:     func(n int) { s.Bytes += n },
		Sequence: func(q dumpsql.Sequence) { s.Sequences = append(s.Sequences, q) },
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
			`CREATE PROCEDURE a."begin"(INOUT begin int) AS $$ a.begin $$;`},
		{"SELECT 'SET transaction_timeout = 0;';",
			"SELECT 'SET transaction_timeout = 0;';"},
	} {
		if got, s := portable(t, c.dump); got != c.want || s.Bytes != len(c.dump) {
			t.Errorf("%s\nbecame %s\nwanted %s (%d bytes told of %d)", c.dump, got, c.want, s.Bytes, len(c.dump))
		}
	}
}

func TestPortableTellsWhatItSees(t *testing.T) {
	_, got := portable(t, "COPY public.a (x, y) FROM stdin;\n\\.\nCOPY \"s p\".\"q\"\"(\" FROM stdin;\n\\.\n"+
		"SELECT pg_catalog.setval('public.s', 5, true);\nSELECT pg_catalog.setval('\"o''s\".\"B\"', -7, false);\n"+
		"SELECT pg_catalog.setval(E'\"a\\\\\\\\b\"', 1, true);\nSELECT pg_catalog.set_config('search_path', '', false);\n")
	got.Bytes = 0
	want := seen{Tables: []string{"public.a", `"s p"."q""("`}, Sequences: []dumpsql.Sequence{
		{Name: "public.s", Last: 5, Called: true}, {Name: `"o's"."B"`, Last: -7}, {Name: `"a\\b"`, Last: 1, Called: true},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkPortable(b *testing.B) {
	row := "12345\tSomeone Else\tsomeone@example.org\t2026-03-01 12:00:00+00\tsome words of a longer text\n"
	dump := "COPY public.t (a) FROM stdin;\n" + strings.Repeat(row, 1<<17) + "\\.\n"
	b.SetBytes(int64(len(dump)))
	p := dumpsql.Portable{Known: func(string) bool { return true }, Table: func(string) {}, Data: func(int) {},
		Sequence: func(dumpsql.Sequence) {}}
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
		"COPY FROM stdin;\n\\.\n", "COPY a.\"b\" FROM stdin;\n\\.\n", "CREATE FUNCTION a.begin.begin.begin;",
	} {
		f.Add([]byte(seed))
	}
	p := dumpsql.Portable{
		Known: func(name string) bool { return name != "transaction_timeout" }, Table: func(name string) { dumpsql.Canonical(name) },
		Data: func(int) {}, Sequence: func(s dumpsql.Sequence) { dumpsql.Canonical(s.Name) },
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
