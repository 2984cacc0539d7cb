package backups

// The crash points of a backup file's deletion.
const (
	CrashDoomed = "backup.doomed" // deletion marked, file still there
	CrashErased = "backup.erased" // file gone, record still there
)

// CrashPoints lists them. Operations have their own; see work.Engine.Points.
var CrashPoints = []string{CrashDoomed, CrashErased}
