//go:build crashpoints

package wiring

import "github.com/pgherd/pgherd/agent/crash"

// CrashHook returns what is called at the named crash points: the process kills itself, as a power cut would, at the point
// that is armed; see package crash.
func CrashHook() func(point string) {
	crash.ArmFromEnv()
	return crash.Point
}

// ArmAgent does the same for the agent's points.
func ArmAgent() { crash.ArmFromEnv() }
