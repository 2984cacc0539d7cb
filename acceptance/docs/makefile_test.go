package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// rule is a line of a Makefile that says how something is made. A variable of a target's own has a "=" after the colon.
var rule = regexp.MustCompile(`(?m)^([a-z][a-z -]*):[^=\n]*$`)

// make does nothing, and says so by "Nothing to be done", for a name that is phony and has no rule.
func TestWhateverIsPhonyHasARule(t *testing.T) {
	text := strings.ReplaceAll(string(check.Must(os.ReadFile("../../Makefile"))(t)), "\\\n", " ")
	made := map[string]bool{}
	for _, found := range rule.FindAllStringSubmatch(regexp.MustCompile(`(?m)##.*$`).ReplaceAllString(text, ""), -1) {
		for _, name := range strings.Fields(found[1]) {
			made[name] = true
		}
	}
	phony := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^\.PHONY:(.*)$`).FindAllStringSubmatch(text, -1) {
		for _, name := range strings.Fields(found[1]) {
			if phony[name] = true; !made[name] {
				t.Errorf("%s has no rule", name)
			}
		}
	}
	if len(phony) < 20 {
		t.Errorf("the Makefile's phony names are %v", phony)
	}
	for name := range made {
		if !phony[name] {
			t.Errorf("%s is the name of no file, and not among .PHONY", name)
		}
	}
}
