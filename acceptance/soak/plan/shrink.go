package plan

import "slices"

// Shrink makes a plan that fails smaller, as long as fails says that what is left still fails: it takes away ever smaller parts
// of the steps (ddmin). Whoever asks bounds how often fails is called, by having it say false from then on.
func Shrink(p Plan, fails func(Plan) bool) Plan {
	steps := p.Steps
	for parts := 2; len(steps) > 1 && parts <= len(steps); {
		smaller := less(steps, parts, func(left []Step) bool { return fails(p.With(left)) })
		switch {
		case smaller != nil:
			steps, parts = smaller, max(2, parts-1)
		case parts == len(steps):
			parts++ // each single step is needed
		default:
			parts = min(len(steps), 2*parts)
		}
	}
	return p.With(steps)
}

// less is what is left when one of so many parts is taken away, and that still fails; nil where every part is needed.
func less(steps []Step, parts int, fails func([]Step) bool) []Step {
	for n := range parts {
		from, to := n*len(steps)/parts, (n+1)*len(steps)/parts
		left := slices.Concat(steps[:from], steps[to:])
		if fails(left) {
			return left
		}
	}
	return nil
}
