package querytimeout

import (
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

func TestParse(t *testing.T) {
	for _, p := range Profiles {
		if got, err := Parse(string(p)); err != nil || got != p {
			t.Errorf("%s: %q, %v", p, got, err)
		}
		if _, known := Policy[p]; !known {
			t.Errorf("%s has no limits", p)
		}
	}
	for _, s := range []string{"", "not_configured", "Standard", "standard ", "long"} {
		if _, err := Parse(s); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%q: %v", s, err)
		}
	}
}
