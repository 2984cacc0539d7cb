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

// The commands about logins. The revocation that begins a deletion has its own points; the rotation of a login that was created
// with the database shares those of a role's.
var (
	prepareSteps = stepsOf("prepare")
	admitSteps   = stepsOf("admit")
	rotateSteps  = stepsOf("rotate")
	revokeSteps  = stepsOf("revoke")
	deleteSteps  = stepsOf("delete")
	removeSteps  = stepsOf("remove")
	expireSteps  = stepsOf("expire")
	optInSteps   = stepsOf("opt_in")
)

// CrashPoints lists the points of additional roles and other logins.
var CrashPoints = pointsOf(prepareSteps, admitSteps, rotateSteps, revokeSteps, deleteSteps, removeSteps, expireSteps, optInSteps)

func pointsOf(of ...steps) (points []string) {
	for _, s := range of {
		points = append(points, s.reserved, s.confirmed, s.committed)
	}
	return points
}
