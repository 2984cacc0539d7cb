package databases

// The crash points of a change of an allowlist.
const (
	CrashAllowlistStored  = "allowlist.stored"  // change committed, agent not yet asked
	CrashAllowlistApplied = "allowlist.applied" // agent enforces it, not yet recorded
)

// CrashPoints lists them. Operations have their own; see work.Engine.Points.
var CrashPoints = []string{CrashAllowlistStored, CrashAllowlistApplied}
