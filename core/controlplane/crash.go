package controlplane

import (
	"slices"

	"github.com/pgherd/pgherd/core/controlplane/backups"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/controlplane/webhooks"
)

// CrashPoints lists the points of every capability: each is a moment between two steps of a flow. Config.Crash is called there,
// so that a test can kill the process and show that the next start continues the flow. Operations have their own; see
// work.Engine.Points.
var CrashPoints = slices.Concat(databases.CrashPoints, backups.CrashPoints, roles.CrashPoints, webhooks.CrashPoints)
