package webhooks

// The crash points of deliveries.
const (
	CrashFannedOut = "webhook.fanned-out" // deliveries made, none attempted
	CrashClaimed   = "webhook.claimed"    // leased, nothing sent
	CrashSent      = "webhook.sent"       // the receiver has it, outcome not committed
)

// CrashPoints lists them.
var CrashPoints = []string{CrashFannedOut, CrashClaimed, CrashSent}
