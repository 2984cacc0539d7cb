package controlplane

// Crash points: each is a moment between two steps of a flow. Config.Crash is called there, so that a test can kill the process
// and show that the next start continues the flow.
const (
	CrashCreateReserved   = "create.reserved"    // intent committed, agent not yet asked
	CrashCreateMoved      = "create.moved"       // put on another server, whose agent is not yet asked
	CrashCreateConfirmed  = "create.confirmed"   // agent has done it, outcome not committed
	CrashCreateCommitted  = "create.committed"   // outcome committed, caller not answered
	CrashCreateClearing   = "create.clearing"    // refused for good, agent not yet asked to clear
	CrashCreateCleared    = "create.cleared"     // cleared at the agent, outcome not committed
	CrashBackupQueued     = "backup.queued"      // intent committed, caller not answered
	CrashBackupClaimed    = "backup.claimed"     // leased, agent not yet asked
	CrashBackupStarted    = "backup.started"     // agent has begun
	CrashBackupReported   = "backup.reported"    // agent has finished, outcome not committed
	CrashBackupCommitted  = "backup.committed"   // outcome committed
	CrashBackupClosed     = "backup.closed"      // canceled or failed at the agent, outcome not committed
	CrashBackupDoomed     = "backup.doomed"      // deletion marked, file still there
	CrashBackupErased     = "backup.erased"      // file gone, record still there
	CrashLifecycleQueued  = "lifecycle.reserved" // intent committed, agent not yet asked
	CrashLifecycleApplied = "lifecycle.applied"  // agent has done it, outcome not committed
	CrashLifecycleFailed  = "lifecycle.failed"   // refused for good, agent not yet asked to undo it
	CrashLifecycleUndone  = "lifecycle.undone"   // undone at the agent, outcome not committed
	CrashAllowlistStored  = "allowlist.stored"   // change committed, agent not yet asked
	CrashWebhookFannedOut = "webhook.fanned-out" // deliveries made, none attempted
	CrashWebhookClaimed   = "webhook.claimed"    // leased, nothing sent
	CrashWebhookSent      = "webhook.sent"       // the receiver has it, outcome not committed
	CrashAllowlistApplied = "allowlist.applied"  // agent enforces it, not yet recorded
)

// CrashPoints lists every point of operations, allowlists and backup files.
var CrashPoints = []string{
	CrashCreateReserved, CrashCreateMoved, CrashCreateConfirmed, CrashCreateCommitted, CrashCreateClearing, CrashCreateCleared,
	CrashBackupQueued, CrashBackupClaimed, CrashBackupStarted, CrashBackupReported, CrashBackupCommitted, CrashBackupClosed,
	CrashBackupDoomed, CrashBackupErased, CrashLifecycleQueued, CrashLifecycleApplied, CrashLifecycleFailed,
	CrashLifecycleUndone, CrashAllowlistStored,
	CrashAllowlistApplied,
}

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
