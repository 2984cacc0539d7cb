package recovery

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

func TestTablesAsPostgreSQLReadsThem(t *testing.T) {
	long := strings.Repeat("x", 63)
	for text, want := range map[string]Table{
		"orders":              {"public", "orders"},
		"Orders":              {"public", "orders"},
		"app.Orders":          {"app", "orders"},
		`"Orders"`:            {"public", "Orders"},
		`App."Or.ders"`:       {"app", "Or.ders"},
		`"a ""b"" c".d`:       {`a "b" c`, "d"},
		"_a1$":                {"public", "_a1$"},
		"ÄRGER":               {"public", "Ärger"},
		`" "`:                 {"public", " "},
		long + "." + long:     {long, long},
		`"x' ; DROP TABLE y"`: {"public", "x' ; DROP TABLE y"},
	} {
		if got, err := ParseTable(text); err != nil || got != want {
			t.Errorf("%q is %+v (%v), want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ".", "a.", ".a", "a.b.c", "1a", "$a", "a b", "a-b", "a;", `"a`, `"a"b`, `""`, `a.""`, " a", "a ", "a.\"b\" ", "(select 1)",
		long + "x", "a\x00", "\"a\x00\"", "\"\xff\"", "ü\xff",
	} {
		if got, err := ParseTable(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestNamesInTheSchemaOfARescue(t *testing.T) {
	long := strings.Repeat("ü", 31)
	for _, c := range []struct {
		table Table
		want  string
	}{
		{Table{"public", "orders"}, "orders"},
		{Table{"app", "orders"}, "app.orders"},
		{Table{"public", long}, long},
		{Table{"app", long}, "app." + strings.Repeat("ü", 25) + "~0d8fefca"},
	} {
		if got := c.table.Rescued(); len(got) > 63 || got != c.want {
			t.Errorf("%+v is %q", c.table, got)
		}
	}
}

func TestTablesOfARescue(t *testing.T) {
	many := make([]string, 51)
	for i := range many {
		many[i] = "t" + strings.Repeat("x", i)
	}
	for field, texts := range map[string][]string{
		"tables": many, "tables[1]": {"a", "b c"}, "tables[2]": {"a", "b", "A"}, "tables[3]": {"a", "b", "b.c", `"b.c"`},
	} {
		_, err := Tables(texts)
		wantField(t, err, field)
	}
	_, err := Tables(nil)
	wantField(t, err, "tables")
	if list, err := Tables(many[:50]); err != nil || len(list) != 50 {
		t.Error(list, err)
	}
}

func wantField(t *testing.T, err error, field string) {
	t.Helper()
	if !fault.Has(err, fault.ValidationError) || fieldOf(err) != field {
		t.Errorf("%v, want one about %s", err, field)
	}
}

// Whatever is read is a name that PostgreSQL takes, and the same when it is written with quotes.
func FuzzParseTable(f *testing.F) {
	for _, seed := range []string{"orders", `App."Or""ders"`, "a.b.c", `"`, "ü.Ü", "$1", "a.\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ParseTable(text)
		if err != nil {
			return
		}
		quote := func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
		again, err := ParseTable(quote(table.Schema) + "." + quote(table.Name))
		if err != nil || again != table || len(table.Rescued()) > 63 || table.Rescued() == "" {
			t.Errorf("%q is %+v, and that is %+v (%v)", text, table, again, err)
		}
	})
}
