package dumpsql_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/agent/dumpsql"
)

// piece is an item in a form that a test can write down.
type piece struct {
	Kind dumpsql.Kind
	SQL  string
}

func read(src io.Reader, limits dumpsql.Limits) (pieces []piece, joined string, err error) {
	r := dumpsql.NewReader(src, limits)
	var all bytes.Buffer
	for {
		item, err := r.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return pieces, all.String(), err
		}
		all.Write(item.Text)
		pieces = append(pieces, piece{item.Kind, string(item.SQL())})
	}
}

func statements(texts ...string) []piece {
	var list []piece
	for _, text := range texts {
		list = append(list, piece{dumpsql.Statement, text})
	}
	return list
}

// single are texts that are one statement each, whatever they hold.
var single = map[string]string{
	"string":                   `SELECT 'a;b''c;\';`,
	"escape string":            `SELECT E'a\';b\\';`,
	"lower-case escape string": `SELECT e'\'';`,
	"name ending in e":         `SELECT nee'\';`,
	"unicode string":           `SELECT U&'d\0061t;a', B'01', X'1F', N';';`,
	"quoted name":              `SELECT "a;""b;";`,
	"dollar quotes":            `DO $$ BEGIN; x := $q$;$q$; END $$;`,
	"tagged dollar quotes":     `DO $_a1$ ; $_a $$ ; $_a1$;`,
	"dollar in a name":         `SELECT a$b$c;`,
	"parameter":                `SELECT $1, $2;`,
	"line comment":             "SELECT 1 -- ; ' $$ \n;",
	"nested comment":           "SELECT /* ; /* ' */ ; \" */ 1;",
	"parentheses":              `CREATE RULE r AS ON INSERT TO t DO ALSO (INSERT INTO a VALUES (1); DELETE FROM b);`,
	"continued escape string":  "SELECT E'a'\n  'b\\';c';",
	"continued after comment":  "SELECT E'a' -- x\n'\\';';",
	"broken continuation":      "SELECT E'a' /* \n */ '\\';",
	"atomic body": "CREATE FUNCTION f() RETURNS int LANGUAGE sql\n BEGIN ATOMIC\n SELECT CASE WHEN true THEN 1 ELSE 2 END;\n" +
		" SELECT 2;\nEND;",
	"atomic procedure": "CREATE OR REPLACE PROCEDURE p()\nBEGIN ATOMIC\n DELETE FROM t;" +
		" INSERT INTO t SELECT (CASE 1 WHEN 1 THEN 2 END);\nEND;",
	"function called begin": `CREATE FUNCTION public.begin() RETURNS int LANGUAGE sql AS 'SELECT 1';`,
	"argument called begin": `CREATE FUNCTION f(begin integer, b integer DEFAULT 1) RETURNS int LANGUAGE sql AS 'SELECT 1';`,
	"column called atomic":  `CREATE TABLE begin (atomic int);`,
	"multibyte":             `SELECT 'Zoë;', "naïve;", größe;`,
	"carriage returns":      "SELECT\r\n 1;",
	"number":                `SELECT 1e5, 0x1F, 1_000;`,
}

func TestOneStatementStaysOne(t *testing.T) {
	for name, sql := range single {
		want := statements("SELECT 0;", sql, "SELECT 9;")
		got, _, err := read(strings.NewReader("SELECT 0;"+sql+"\nSELECT 9;"), dumpsql.Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestCopyBlocks(t *testing.T) {
	const dump = "\\restrict Key1\n\n-- Data\n\nCOPY public.\"we;ird\" (a, b) FROM stdin;\n1\t\\\\.\n\\.x\n';$$\n\\.\n\n" +
		"COPY e FROM STDIN WITH (FORMAT csv);\n\\.\r\nSELECT 1;\n\\unrestrict Key1\n\n-- end\n"
	want := []piece{
		{dumpsql.Meta, `\restrict Key1`},
		{dumpsql.CopyStart, "COPY public.\"we;ird\" (a, b) FROM stdin;\n"},
		{dumpsql.CopyData, "1\t\\\\.\n"}, {dumpsql.CopyData, "\\.x\n';$$\n"}, {dumpsql.CopyEnd, "\\.\n"},
		{dumpsql.CopyStart, "COPY e FROM STDIN WITH (FORMAT csv);\n"}, {dumpsql.CopyEnd, "\\.\r\n"},
		{dumpsql.Statement, "SELECT 1;"}, {dumpsql.Meta, `\unrestrict Key1`}, {dumpsql.Trailer, ""},
	}
	got, joined, err := read(strings.NewReader(dump), dumpsql.Limits{})
	if err != nil || joined != dump {
		t.Fatalf("%v, joined %q", err, joined)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRefused(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		text string
		want error
		line int64
	}{
		"shell":                   {"SELECT 1;\n\\! id\n", dumpsql.ErrBackslash, 2},
		"include":                 {"\\i /etc/passwd\n", dumpsql.ErrBackslash, 1},
		"within a statement":      {"SELECT 1 \\g out\n;", dumpsql.ErrBackslash, 1},
		"gexec":                   {"SELECT 1 \\gexec\n", dumpsql.ErrBackslash, 1},
		"end of data elsewhere":   {"SELECT 1;\n\\.\n", dumpsql.ErrBackslash, 2},
		"not at the line start":   {"SELECT 1; \\restrict a\n", dumpsql.ErrBackslash, 1},
		"glued to a statement":    {"SELECT 1;\\restrict a\n", dumpsql.ErrBackslash, 1},
		"restrict without key":    {"\\restrict\n", dumpsql.ErrBackslash, 1},
		"restrict with more":      {"\\restrict a b\n", dumpsql.ErrBackslash, 1},
		"restrict with backslash": {"\\restrict a\\!id\n", dumpsql.ErrBackslash, 1},
		"restrict twice":          {"\\restrict a\n\\restrict a\n", dumpsql.ErrRestrictKey, 2},
		"another key":             {"\\restrict a\n\\unrestrict b\n", dumpsql.ErrRestrictKey, 2},
		"unrestrict alone":        {"\\unrestrict b\n", dumpsql.ErrRestrictKey, 1},
		"never unrestricted":      {"\\restrict a\nSELECT 1;", dumpsql.ErrRestrictKey, 2},
		"open statement":          {"SELECT 1;\nSELECT 2", dumpsql.ErrUnterminated, 2},
		"open string":             {"SELECT 'a;", dumpsql.ErrUnterminated, 1},
		"open escape string":      {"SELECT E'a\\", dumpsql.ErrUnterminated, 1},
		"open name":               {"SELECT \"a;", dumpsql.ErrUnterminated, 1},
		"open dollar quotes":      {"DO $a$ ; $a", dumpsql.ErrUnterminated, 1},
		"open comment":            {"/* /* */ ;", dumpsql.ErrUnterminated, 1},
		"open copy":               {"COPY t FROM stdin;\n1\n", dumpsql.ErrUnterminated, 3},
		"open copy statement":     {"COPY t FROM stdin;", dumpsql.ErrUnterminated, 1},
		"open atomic body":        {"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1;", dumpsql.ErrUnterminated, 1},
		"zero byte":               {"SELECT 1\x00;", dumpsql.ErrZeroByte, 1},
		"zero byte in a string":   {"SELECT '\x00';", dumpsql.ErrZeroByte, 1},
		"zero byte in escapes":    {"SELECT E'\\\x00';", dumpsql.ErrZeroByte, 1},
		"zero byte in quotes":     {"DO $$\x00$$;", dumpsql.ErrZeroByte, 1},
		"zero byte in a comment":  {"-- \x00\nSELECT 1;", dumpsql.ErrZeroByte, 1},
		"long name":               {"SELECT " + long + ";", dumpsql.ErrStatementTooLong, 1},
		"long string":             {"SELECT '" + long + "';", dumpsql.ErrStatementTooLong, 1},
		"long number":             {"SELECT " + strings.Repeat("1", 5000) + ";", dumpsql.ErrStatementTooLong, 1},
		"long quotes":             {"DO $$" + long + "$$;", dumpsql.ErrStatementTooLong, 1},
		"long tag":                {"DO $" + long + "$;", dumpsql.ErrStatementTooLong, 1},
		"long comment":            {"/*" + long + "*/;", dumpsql.ErrStatementTooLong, 1},
		"long line comment":       {"--" + long, dumpsql.ErrStatementTooLong, 1},
		"long blanks":             {strings.Repeat("\n", 5000), dumpsql.ErrStatementTooLong, 1},
		"many statements":         {strings.Repeat("SELECT 1;", 5000), dumpsql.ErrTooLong, 1},
		"long data":               {"COPY t FROM stdin;\n" + strings.Repeat(long, 4) + "\n\\.\n", dumpsql.ErrTooLong, 0},
	} {
		_, _, err := read(iotest.HalfReader(strings.NewReader(c.text)), dumpsql.Limits{Statement: 4000, Total: 12000})
		var at *dumpsql.SyntaxError
		if !errors.Is(err, c.want) || !errors.As(err, &at) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		} else if c.line > 0 && at.Line != c.line {
			t.Errorf("%s: line %d, want %d", name, at.Line, c.line)
		}
	}
}

func TestLinesAreThoseOfTheStatement(t *testing.T) {
	r := dumpsql.NewReader(strings.NewReader("-- a\n\nSELECT\n1;\n\nCOPY t FROM stdin;\n1\n2\n\\.\nSELECT 2;"), dumpsql.Limits{})
	var got []int64
	for {
		item, err := r.Next()
		if err != nil {
			break
		}
		got = append(got, item.Line)
	}
	if diff := cmp.Diff([]int64{3, 6, 7, 9, 10}, got); diff != "" {
		t.Error(diff)
	}
}

// A read error says nothing about the dump, and is no *SyntaxError.
func TestAReadErrorIsKept(t *testing.T) {
	var syntax *dumpsql.SyntaxError
	broken := errors.New("broken")
	for _, text := range []string{"", "SELECT '", "COPY t FROM stdin;\n", "COPY t FROM stdin;\nabc", "SELECT 1", "DO $a"} {
		_, _, err := read(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), dumpsql.Limits{})
		if !errors.Is(err, broken) || errors.As(err, &syntax) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// How the bytes arrive changes nothing, and nothing is lost.
func TestSplitAndJoined(t *testing.T) {
	parts := []string{"COPY t FROM stdin;\n1\t2\n\\.\n", "COPY t (a) FROM stdin;\n\\.\n", "\n-- c\n", "/* /**/ */", " ", ";",
		"COPY u FROM stdin;\n" + strings.Repeat("0123456789abcdef", 20_000) + "\n\\N\n\\.\n"}
	for _, sql := range single {
		parts = append(parts, sql)
	}
	rapid.Check(t, func(t *rapid.T) {
		dump := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 12).Draw(t, "parts"), "\n")
		whole, joined, err := read(strings.NewReader(dump), dumpsql.Limits{})
		if err != nil || joined != dump {
			t.Fatalf("%v; %d bytes became %d", err, len(dump), len(joined))
		}
		src := io.Reader(strings.NewReader(dump))
		if len(dump) < 5000 {
			src = iotest.OneByteReader(src)
		} else {
			src = iotest.HalfReader(src)
		}
		bits, joined, err := read(src, dumpsql.Limits{})
		if err != nil || joined != dump {
			t.Fatalf("in bits: %v; %d bytes became %d", err, len(dump), len(joined))
		}
		if diff := cmp.Diff(withoutData(whole), withoutData(bits)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// withoutData leaves out COPY data, whose pieces depend on how the bytes arrive.
func withoutData(pieces []piece) (kept []piece) {
	for _, p := range pieces {
		if p.Kind != dumpsql.CopyData {
			kept = append(kept, p)
		}
	}
	return kept
}

// commented demands of each comment that it is one, and that nothing of a statement is in it.
func commented(t *testing.T, dump []byte, limits dumpsql.Limits) {
	t.Helper()
	for r := dumpsql.NewReader(bytes.NewReader(dump), limits); ; {
		item, err := r.Next()
		if err != nil {
			return
		}
		for text := range item.Comments() {
			if !strings.HasPrefix(text, "--") || strings.ContainsAny(text, "\r\n") {
				t.Fatalf("comment %q", text)
			}
		}
	}
}

// The reader leaves nothing of a dump out, makes the same statements however the bytes come, and ends each with a semicolon.
func FuzzReader(f *testing.F) {
	for _, sql := range single {
		f.Add([]byte(sql), 4096)
	}
	for _, seed := range []string{
		"\\restrict a\nCOPY t FROM stdin;\n1\n\\.\n\\unrestrict a\n", "COPY t FROM stdin;\n\\.", "E'\\", "$a$", "/*/**", "\"", "\x00",
		"-- PostgreSQL database dump complete\n--\n\n\\unrestrict a", "/* -- /* */ -- a\n*/ -- b\r-- c", "--", "/* /* */ */ --",
		"CREATE FUNCTION f() BEGIN ATOMIC CASE END; END; ;", "CREATE OR REPLACE FUNCTION begin atomic ;;", "COPY copy from stdin ;;\n",
	} {
		f.Add([]byte(seed), 64)
	}
	f.Fuzz(func(t *testing.T, dump []byte, limit int) {
		limits := dumpsql.Limits{Statement: max(1, limit%10_000), Total: 1 << 20}
		whole, joined, err := read(bytes.NewReader(dump), limits)
		if !strings.HasPrefix(string(dump), joined) || (err == nil && joined != string(dump)) {
			t.Fatalf("%q became %q", dump, joined)
		}
		bits, _, bitsErr := read(iotest.OneByteReader(bytes.NewReader(dump)), limits)
		if (err == nil) != (bitsErr == nil) {
			t.Fatalf("at once: %v; in bits: %v", err, bitsErr)
		}
		if diff := cmp.Diff(withoutData(whole), withoutData(bits)); err == nil && diff != "" {
			t.Fatal(diff)
		}
		commented(t, dump, limits)
		for _, p := range whole {
			if p.Kind == dumpsql.Statement && (!strings.HasSuffix(p.SQL, ";") || strings.Contains(p.SQL, "\x00")) {
				t.Fatalf("statement %q", p.SQL)
			}
		}
	})
}
