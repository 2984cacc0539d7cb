package linear

import (
	"fmt"
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
		case changeSeen, knocked:
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

// missing are the kinds of events that were never seen.
func (c coverage) missing() []string {
	want := []string{
		diedPassword, string(createTried),
		fmt.Sprintf("%s: %s", changeBegun, role.Rotation), fmt.Sprintf("%s: %s", changeBegun, role.Revocation),
		fmt.Sprintf("%s: true", changeSeen), fmt.Sprintf("%s: false", changeSeen),
		fmt.Sprintf("%s: true", knocked), fmt.Sprintf("%s: false", knocked),
	}
	for is := range steps {
		want = append(want, string(is))
	}
	return slices.DeleteFunc(want, func(what string) bool { return c[what] > 0 })
}
