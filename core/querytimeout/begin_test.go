package querytimeout

import (
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

func TestBegin(t *testing.T) {
	cases := map[string]struct {
		under UnderWay
		want  fault.Code
	}{
		"nothing":                     {UnderWay{}, ""},
		"another change":              {UnderWay{Change: "a"}, fault.QueryTimeoutConflict},
		"a backup":                    {UnderWay{Operation: "a"}, fault.DatabaseStateConflict},
		"a rotation":                  {UnderWay{LoginChange: "a"}, fault.DatabaseStateConflict},
		"a backup and a rotation":     {UnderWay{Operation: "a", LoginChange: "b"}, fault.DatabaseStateConflict},
		"another change and rotation": {UnderWay{Change: "a", LoginChange: "b"}, fault.QueryTimeoutConflict},
	}
	for name, c := range cases {
		err := c.under.Begin()
		if c.want == "" && err != nil || c.want != "" && !fault.Has(err, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
