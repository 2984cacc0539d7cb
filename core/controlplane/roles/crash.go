package roles

// steps are the three points of one command about a login.
type steps struct {
	reserved  string // intent committed, agent not yet asked
	confirmed string // agent has answered, outcome not committed
	committed string // outcome committed, caller not answered
}

func stepsOf(what string) steps {
	return steps{"role." + what + ".reserved", "role." + what + ".confirmed", "role." + what + ".committed"}
}

// The commands that make a role or an overlay. Changes of logins are operations, which have their own points; see
// work.Engine.Points.
var (
	prepareSteps = stepsOf("prepare")
	admitSteps   = stepsOf("admit")
	optInSteps   = stepsOf("opt_in")
)

// CrashPoints lists the points of additional roles.
var CrashPoints = pointsOf(prepareSteps, admitSteps, optInSteps)

func pointsOf(of ...steps) (points []string) {
	for _, s := range of {
		points = append(points, s.reserved, s.confirmed, s.committed)
	}
	return points
}
