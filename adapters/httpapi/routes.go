package httpapi

import (
	"slices"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/core/controlplane"
)

const (
	keyed         = serve.Prefix
	databasesPath = keyed + "/databases"
)

// Routes is the one table of the API's routes (spec, section "Endpoints"). Each area brings its own rows.
func Routes(uc *controlplane.ControlPlane) (table []serve.Route) {
	for _, area := range []struct {
		name, meaning string
		rows          []serve.Route
	}{
		{ // before the databases, so that "deleted" is no ID
			"Deletion", "Deleting databases, and recovering them", deletionRoutes{uc.Deletion}.routes(),
		},
		{
			"Databases", "Databases and their lifecycle",
			slices.Concat(databaseRoutes{uc.Databases}.routes(), upgradeRoutes{uc.Moves}.routes()),
		},
		{"Allowlist", "Networks that may connect to a database", allowlistRoutes{uc.Allowlist}.routes()},
		{"Query timeouts", "How long the sessions of a database may take", timeoutRoutes{uc.QueryTimeouts}.routes()},
		{"Slow queries", "What takes the time of a database", slowQueryRoutes{uc.SlowQueries}.routes()},
		{"Backups", "Backup files of a database", backupRoutes{uc.Backups}.routes()},
		{
			"Recovery", "As of which moments a database can be had back, and what it held then",
			slices.Concat(momentRoutes{uc.Moments, uc.Certificates}.routes(), lookRoutes{uc.Looks}.routes()),
		},
		{"Certificates", "Signed proofs that backups can be restored", certificateRoutes{uc.Certificates}.routes()},
		{
			"Restores", "Bringing a database back to one of its backups, or to a dump of your own",
			slices.Concat(restoreRoutes{uc.Restores}.routes(), uploadRoutes{uc.Uploads}.routes()),
		},
		{"Clones", "New databases that begin with what others hold", cloneRoutes{uc.Clones}.routes()},
		{
			"Previews", "Short-lived databases for CI, for synthetic test data only; they need a preview CI key",
			previewRoutes{uc.Previews}.routes(),
		},
		{"Extensions", "PostgreSQL extensions of a database", extensionRoutes{uc.Extensions}.routes()},
		{"CI tokens", "Keys for pipelines that store none", tokenRoutes{uc.CITokens}.routes()},
		{"CI namespaces", "Namespaces of pipelines, and whose tokens they trust", namespaceRoutes{uc.Pipelines}.routes()},
		{"Operations", "Asynchronous work and its progress", operationRoutes{uc.Operations}.routes()},
		{"Usage", "What a database uses of its server, and what is billed by", usageRoutes{uc.Usage}.routes()},
		{"Activity", "What was done to a database, and by whom", activityRoutes{uc.Activity}.routes()},
		{"Members", "People who may use a database beside its owner, and invitations", memberRoutes{uc.Members}.routes()},
		{"Webhooks", "Endpoints that are sent signed events", webhookRoutes{uc.Webhooks}.routes()},
		{"Additional roles", "Further logins of a database, each with its own password", customRoles{uc.Roles}.routes()},
		{
			"Legacy roles", "Further logins of a database with a single login, which an operator has activated",
			legacyRoles{customRoles{uc.LegacyRoles.Roles}, uc.LegacyRoles}.routes(),
		},
		{"Managed logins", "The logins that were created with a database", managedRoles{uc.ManagedLogins}.routes()},
	} {
		for _, row := range area.rows {
			row.Tag = serve.Tag{Name: area.name, Meaning: area.meaning}
			table = append(table, row)
		}
	}
	return table
}
