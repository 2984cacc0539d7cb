package linear

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pgherd/pgherd/core/role"
)

// coverage counts what histories held. Without it, histories in which nothing happens would be right, too.
type coverage map[string]int

func (c coverage) add(h *history) {
	gotIn := map[int8]bool{}
	for _, o := range h.inOrder() {
		f := o.Input.(fact)
		c[string(f.is)]++
		switch f.is {
		case changeBegun:
			c[fmt.Sprintf("%s: %s", f.is, f.kind)]++
		case changeSeen, knocked, optedIn, rested:
			c[fmt.Sprintf("%s: %t", f.is, f.yes)]++
		}
		if f.is == knocked && f.yes {
			gotIn[f.password] = true
		}
		if f.is == knocked && !f.yes && gotIn[f.password] {
			c[diedPassword]++
		}
	}
}

const diedPassword = "a password was refused that had got in"

// managedOnly are the events of routes that databases with a single login do not have.
var managedOnly = []event{renamed, renameNo, removeBegun, removeDone, removePending, removeNo, removeKept}

// missing are the kinds of events that were never seen.
func (c coverage) missing(legacy bool) []string {
	want := []string{
		diedPassword,
		fmt.Sprintf("%s: %s", changeBegun, role.Rotation), fmt.Sprintf("%s: %s", changeBegun, role.Revocation),
		fmt.Sprintf("%s: true", changeSeen), fmt.Sprintf("%s: false", changeSeen),
		fmt.Sprintf("%s: true", knocked), fmt.Sprintf("%s: false", knocked),
	}
	of := maps.Clone(steps)
	if legacy {
		maps.Copy(of, legacySteps)
		maps.DeleteFunc(of, func(is event, _ func(state, fact) []state) bool { return slices.Contains(managedOnly, is) })
	}
	for is := range of {
		want = append(want, string(is))
	}
	if legacy {
		want = append(want, fmt.Sprintf("%s: false", rested), fmt.Sprintf("%s: false", optedIn))
	}
	for tried := range perhaps {
		if (tried == createTried) != legacy {
			want = append(want, string(tried))
		}
	}
	return slices.DeleteFunc(want, func(what string) bool { return c[what] > 0 })
}
