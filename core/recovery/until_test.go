package recovery

import (
	"strings"
	"testing"
)

func TestComparisons(t *testing.T) {
	text := func(s string) *string { return &s }
	for until, answers := range map[string]map[string]bool{
		"< 1000":    {"999": true, "999.9999999999999999999": true, "1000": false, "-1": true, "1e3": false, "abc": false, "": false},
		"<=1000":    {"1000": true, "1000.0": true, "1001": false},
		" =  1.50 ": {"1.5": true, "15e-1": true, "1.51": false, "NaN": false},
		"<> 0":      {"0": false, "0.000": false, "1": true, "Infinity": true, "abc": true},
		">= -.5":    {"-0.5": true, "0": true, "-1": false},
		"> 1e2":     {"100": false, "101": true, "1e400": true, "1e4000": false},
		"= 'it''s'": {"it's": true, "it''s": false, "": false},
		"= ''":      {"": true, " ": false},
		"> 'b'":     {"c": true, "b": false, "ä": true, "a": false, "B": false},
		"<> 'true'": {"false": true, "true": false},
	} {
		u, err := ParseUntil(until)
		if err != nil || u.Holds(nil) {
			t.Errorf("%q: %v; of NULL it is %t", until, err, u.Holds(nil))
		}
		for answer, want := range answers {
			if got := u.Holds(text(answer)); got != want {
				t.Errorf("%q %s is %t", answer, until, got)
			}
		}
	}
	for _, until := range []string{
		"", "<", "1000", "< x", "=< 1", "== 1", "!= 1", "< 1 2", "= 'a", "= a'", "= 'a'b'", "= '", "= ''''' ", "< 1e9999", "< 0x10",
		"= \"a\"", "= NULL", "= 'a' OR true", "< '" + strings.Repeat("x", 1024) + "'", "= '\xff'",
	} {
		if u, err := ParseUntil(until); err == nil {
			t.Errorf("%q is %+v", until, u)
		}
	}
}

// Of the relations that are each other's opposite, one holds and the other does not, whatever an answer is.
func FuzzUntil(f *testing.F) {
	f.Add("< 1000", "999")
	f.Add("= 'it''s'", "it's")
	f.Add(">= 1e999", "NaN")
	f.Fuzz(func(t *testing.T, until, answer string) {
		u, err := ParseUntil(until)
		if err != nil {
			return
		}
		opposite := u
		opposite.relation = map[string]string{"<": ">=", ">=": "<", ">": "<=", "<=": ">", "=": "<>", "<>": "="}[u.relation]
		number := u.number == nil || numeral.MatchString(answer)
		if u.Holds(&answer) == opposite.Holds(&answer) && (number || u.relation == "=" || u.relation == "<>") {
			t.Errorf("%q and its opposite: %t for %q", until, u.Holds(&answer), answer)
		}
	})
}
