package restore

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
)

func TestWhichRestoresShrink(t *testing.T) {
	for name, c := range map[string]struct {
		change Change
		said   string
	}{
		"nothing at all":                {Change{}, ""},
		"an empty database":             {Change{Tables: Count{3, 0}}, ""},
		"one that seems to be empty":    {Change{Tables: Count{3, 0}, Estimated: true}, "3 tables with about 0 rows, and would have 0"},
		"an empty database is filled":   {Change{Tables: Count{0, 3}, Rows: Count{0, 9}}, ""},
		"one row":                       {Change{Tables: Count{1, 1}, Rows: Count{1, 0}}, "1 rows, and would have 1 with 0"},
		"nine tenths":                   {Change{Tables: Count{1, 1}, Rows: Count{1000, 100}}, ""},
		"more than nine tenths":         {Change{Tables: Count{1, 1}, Rows: Count{1000, 99}}, "1000 rows"},
		"nine of ten tables":            {Change{Tables: Count{10, 1}, Rows: Count{10, 10}}, ""},
		"more than nine of ten":         {Change{Tables: Count{11, 1}, Rows: Count{10, 10}}, "11 tables"},
		"an estimate":                   {Change{Rows: Count{1000, 9}, Estimated: true}, "about 1000 rows"},
		"what nobody could count":       {Change{Tables: Count{0, 3}, Unknown: true}, "could not be counted"},
		"more rows than fit ten of":     {Change{Rows: Count{1 << 62, 1 << 60}}, ""},
		"far fewer than that, and some": {Change{Rows: Count{1 << 62, 1 << 58}}, "rows"},
	} {
		switch got := c.change.Refusal(false); {
		case (got == nil) != (c.said == ""):
			t.Errorf("%s: %v, want %q", name, got, c.said)
		case got != nil && (got.Code != fault.RestoreShrinks || !strings.Contains(got.Message, c.said)):
			t.Errorf("%s: %v, want %q", name, got, c.said)
		}
		if got := c.change.Refusal(true); got != nil {
			t.Errorf("%s, confirmed: %v", name, got)
		}
	}
}

func TestShrinksIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<40)
		c := Count{n.Draw(t, "before"), n.Draw(t, "after")}
		if got, want := c.shrinks(), 10*(c.Before-c.After) > 9*c.Before; got != want {
			t.Fatalf("%+v: %t", c, got)
		}
	})
}
