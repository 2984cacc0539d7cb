package languages

import (
	"strings"
	"testing"
)

func TestWhatPasses(t *testing.T) {
	perl, tcl := Found{Name: "plperl", Extension: "plperl"}, Found{Name: "pltcl", Database: "orders"}
	for name, c := range map[string]struct {
		policy Policy
		found  []Found
		names  string // that the refusal says how to accept; empty where all pass
	}{
		"no language":         {Policy{}, nil, ""},
		"one":                 {Policy{}, []Found{perl}, "plperl"},
		"two":                 {Policy{}, []Found{perl, tcl}, "plperl,pltcl"},
		"accepted":            {Policy{Accept: []string{"plperl"}}, []Found{perl}, ""},
		"another is accepted": {Policy{Accept: []string{"plperl"}}, []Found{perl, tcl}, "pltcl"},
		"exact names only":    {Policy{Accept: []string{"pl", "plperlu", "PLPERL"}}, []Found{perl}, "plperl"},
		"in two databases":    {Policy{}, []Found{tcl, {Name: "pltcl", Database: "two"}}, "pltcl"},
		"for development":     {Policy{Development: true}, []Found{perl, tcl}, ""},
	} {
		err := c.policy.Admit(c.found)
		if c.names == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !Is(err) || !strings.HasSuffix(err.Error(), "--accept-languages "+c.names) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsNoNameIsNamed(t *testing.T) {
	if err := (Policy{Accept: []string{"plperl", "plv8"}}).Check(); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", "*", "pl*", "pl perl", "plperl,pltcl", "plperl\n"} {
		if err := (Policy{Accept: []string{text}}).Check(); err == nil || !strings.Contains(err.Error(), "accepted languages") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
