package controlplane

// Crash points: each is a moment between two steps of a flow. Config.Crash is called there, so that a test can kill the process
// and show that the next start continues the flow.
const (
	CrashBackupDoomed     = "backup.doomed"      // deletion marked, file still there
	CrashBackupErased     = "backup.erased"      // file gone, record still there
	CrashAllowlistStored  = "allowlist.stored"   // change committed, agent not yet asked
	CrashWebhookFannedOut = "webhook.fanned-out" // deliveries made, none attempted
	CrashWebhookClaimed   = "webhook.claimed"    // leased, nothing sent
	CrashWebhookSent      = "webhook.sent"       // the receiver has it, outcome not committed
	CrashAllowlistApplied = "allowlist.applied"  // agent enforces it, not yet recorded
)

// CrashPoints lists every point of allowlists and backup files. Operations have their own; see work.Engine.Points.
var CrashPoints = []string{CrashBackupDoomed, CrashBackupErased, CrashAllowlistStored, CrashAllowlistApplied}

// DispatchCrashPoints lists the points of webhooks.
var DispatchCrashPoints = []string{CrashWebhookFannedOut, CrashWebhookClaimed, CrashWebhookSent}

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
)

// RoleCrashPoints lists the points of additional roles and other logins.
var RoleCrashPoints = pointsOf(prepareSteps, admitSteps, rotateSteps, revokeSteps, deleteSteps, removeSteps, expireSteps)

func pointsOf(of ...steps) (points []string) {
	for _, s := range of {
		points = append(points, s.reserved, s.confirmed, s.committed)
	}
	return points
}
