package controlplane

// Crash points: each is a moment between two steps of a flow. Config.Crash is called there, so that a test can kill the
// process and show that the next start goes on.
const (
	CrashCreateReserved   = "create.reserved"    // intent committed, agent not yet asked
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
	CrashAllowlistStored  = "allowlist.stored"   // change committed, agent not yet asked
	CrashWebhookFannedOut = "webhook.fanned-out" // deliveries made, none attempted
	CrashWebhookClaimed   = "webhook.claimed"    // leased, nothing sent
	CrashWebhookSent      = "webhook.sent"       // the receiver has it, outcome not committed
	CrashAllowlistApplied = "allowlist.applied"  // agent enforces it, not yet recorded
)

// CrashPoints lists every point of operations, allowlists and backup files.
var CrashPoints = []string{
	CrashCreateReserved, CrashCreateConfirmed, CrashCreateCommitted, CrashCreateClearing, CrashCreateCleared,
	CrashBackupQueued, CrashBackupClaimed, CrashBackupStarted, CrashBackupReported, CrashBackupCommitted, CrashBackupClosed,
	CrashBackupDoomed, CrashBackupErased, CrashLifecycleQueued, CrashLifecycleApplied, CrashAllowlistStored,
	CrashAllowlistApplied,
}

// DispatchCrashPoints lists those of webhooks.
var DispatchCrashPoints = []string{CrashWebhookFannedOut, CrashWebhookClaimed, CrashWebhookSent}
