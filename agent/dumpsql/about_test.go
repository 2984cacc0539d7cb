package dumpsql_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/agent/dumpsql"
)

func TestWhatStatementsAreAbout(t *testing.T) {
	for comment, want := range map[string][2]string{
		"--\n-- Name: f(integer); Type: FUNCTION; Schema: public; Owner: shop\n--\n\n": {"FUNCTION public.f(integer)", "shop"},
		"-- Name: public; Type: SCHEMA; Schema: -; Owner: -\n":                         {"SCHEMA public", "-"},
		"-- Data for Name: t; Type: TABLE DATA; Schema: s; Owner: shop rt\r\n":         {"TABLE DATA s.t", "shop rt"},
		"-- Name: a; Type: X; Schema: x; Owner: x\n-- Name: b; Type: ACL; Schema: s; Owner: c\n": {
			"ACL s.b", "c"},
		"-- anything\n": {},
	} {
		item, err := dumpsql.NewReader(strings.NewReader(comment+"SELECT 1;"), dumpsql.Limits{}).Next()
		if err != nil {
			t.Fatal(err)
		}
		object, owner, ok := item.About()
		if got := [2]string{object, owner}; got != want || ok != (want[0] != "") {
			t.Errorf("%q: %q, %t", comment, got, ok)
		}
	}
}

func TestComments(t *testing.T) {
	const text = "-- a\r\n\n  --b\n/* -- c /*\n-- d\n*/ */ -- e\nSELECT '\n-- f\n'; -- g\n--h"
	r := dumpsql.NewReader(strings.NewReader(text), dumpsql.Limits{})
	for _, want := range [][]string{{"-- a", "--b", "-- e"}, {"-- g", "--h"}} {
		item, err := r.Next()
		if got := slices.Collect(item.Comments()); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

// A name of a customer's cannot say more than a name.
func FuzzAbout(f *testing.F) {
	for _, name := range []string{"t", "f(integer, text)", "x; Type: ACL; Schema: y; Owner: postgres", "; Owner: ", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if strings.ContainsAny(name, "\n\r\x00") {
			return // pg_dump leaves none in a comment
		}
		text := "-- Name: " + name + "; Type: TABLE; Schema: s; Owner: shop rt\nSELECT 1;"
		item, err := dumpsql.NewReader(strings.NewReader(text), dumpsql.Limits{}).Next()
		if err != nil {
			t.Fatal(err)
		}
		if object, owner, _ := item.About(); owner != "shop rt" || !strings.HasPrefix(object, "TABLE s.") {
			t.Errorf("%q: %q, %q", name, object, owner)
		}
	})
}
