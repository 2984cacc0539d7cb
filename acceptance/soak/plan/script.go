package plan

import (
	"fmt"
	"strings"
)

// Script is the plan as somebody reads it who follows it by hand, a line a step.
func (p Plan) Script() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %d accounts, %d steps\n", p.Seed, p.Accounts, len(p.Steps))
	round := -1
	for _, s := range p.Steps {
		if s.Round != round {
			round = s.Round
			fmt.Fprintf(&b, "round %d\n", round+1)
		}
		fmt.Fprintf(&b, "%5d  %s\n", s.Number, s)
	}
	return b.String()
}

// String says what the step is.
func (s Step) String() string {
	if s.Disturbance != nil {
		return s.Disturbance.String()
	}
	return s.Action.String()
}

// String says who does what to what, and how.
func (a *Action) String() string {
	text := fmt.Sprintf("account %d, %s%d: %s", a.Account+1, a.Way, a.Host+1, a.Do)
	if a.On != 0 {
		text += fmt.Sprintf(" (what step %d made", a.On)
		if a.In != 0 {
			text += fmt.Sprintf(", in the database of step %d", a.In)
		}
		text += ")"
	}
	if a.Waits {
		text += ", and wait"
	}
	return text
}

// String says what goes wrong, when and for how long.
func (d *Disturbance) String() string {
	text := fmt.Sprintf("%s after: %s %s", d.After, d.Kind, d.Part)
	switch d.Kind {
	case Kill:
		return text
	case Cut:
		text += " off " + string(d.Other)
	case Jump:
		text += " by " + d.Jump.String()
	case Stop, Fill:
	}
	return fmt.Sprintf("%s, for %s", text, d.Lasts)
}
