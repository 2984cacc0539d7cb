package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// rule is a line of a Makefile that says how something is made. A variable of a target's own has a "=" after the colon.
var rule = regexp.MustCompile(`(?m)^([a-z][a-z -]*):[^=\n]*$`)

// named is a target as a page names it, in a line of text or in a block.
var named = regexp.MustCompile("(?m)(?:`|^ {4,})make ([a-z][a-z-]*)")

// Whatever pages say that somebody makes is there.
func TestPagesNameTargetsThatAreThere(t *testing.T) {
	t.Parallel()
	made, known := rules(t), 0
	for _, file := range sources(t) {
		if filepath.Ext(file) != ".md" {
			continue
		}
		for _, found := range named.FindAllStringSubmatch(contents(t, file), -1) {
			if known++; !made[found[1]] {
				t.Errorf("%s: the Makefile has no target %s", file, found[1])
			}
		}
	}
	if known < 50 {
		t.Errorf("only %d targets were found", known)
	}
}

// makefile is its text, with each rule in one line.
func makefile(t *testing.T) string {
	t.Helper()
	return strings.ReplaceAll(contents(t, root+"/Makefile"), "\\\n", " ")
}

// rules are the names that it says how to make.
func rules(t *testing.T) map[string]bool {
	t.Helper()
	made := map[string]bool{}
	for _, found := range rule.FindAllStringSubmatch(regexp.MustCompile(`(?m)##.*$`).ReplaceAllString(makefile(t), ""), -1) {
		for _, name := range strings.Fields(found[1]) {
			made[name] = true
		}
	}
	return made
}

// make does nothing, and says so by "Nothing to be done", for a name that is phony and has no rule.
func TestWhateverIsPhonyHasARule(t *testing.T) {
	made, phony := rules(t), map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^\.PHONY:(.*)$`).FindAllStringSubmatch(makefile(t), -1) {
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
