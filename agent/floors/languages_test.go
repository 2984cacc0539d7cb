package floors

import (
	"strings"
	"testing"
)

func TestWhichLanguagesPass(t *testing.T) {
	perl, tcl := Language{Name: "plperl", Extension: "plperl"}, Language{Name: "pltcl", Database: "orders"}
	for name, c := range map[string]struct {
		policy Policy
		found  []Language
		names  string // that the refusal says how to accept; empty where all pass
	}{
		"no language":         {Policy{}, nil, ""},
		"one":                 {Policy{}, []Language{perl}, "plperl"},
		"two":                 {Policy{}, []Language{perl, tcl}, "plperl,pltcl"},
		"accepted":            {Policy{Accept: []string{"plperl"}}, []Language{perl}, ""},
		"another is accepted": {Policy{Accept: []string{"plperl"}}, []Language{perl, tcl}, "pltcl"},
		"exact names only":    {Policy{Accept: []string{"pl", "plperlu", "PLPERL"}}, []Language{perl}, "plperl"},
		"in two databases":    {Policy{}, []Language{tcl, {Name: "pltcl", Database: "two"}}, "pltcl"},
		"for development":     {Policy{Development: true}, []Language{perl, tcl}, ""},
	} {
		err := c.policy.AdmitLanguages(c.found)
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

func TestWhatIsNoLanguageIsNamed(t *testing.T) {
	if err := (Policy{Accept: []string{"plperl", "plv8"}}).CheckLanguages(); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", "*", "pl*", "pl perl", "plperl,pltcl", "plperl\n"} {
		err := Policy{Accept: []string{text}}.CheckLanguages()
		if err == nil || !strings.Contains(err.Error(), "accepted languages") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
