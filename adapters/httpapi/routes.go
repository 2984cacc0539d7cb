package httpapi

import (
	"slices"

	"github.com/pgherd/pgherd/core/controlplane"
)

const databasesPath = keyed + "/databases"

// Routes is the one table of the API's routes (spec, section "Endpoints"). Each area brings its own rows.
func Routes(uc *controlplane.ControlPlane) (table []Route) {
	for _, area := range []struct {
		tag  Tag
		rows []Route
	}{
		{ // before the databases, so that "deleted" is no ID
			Tag{"Deletion", "Deleting databases, and recovering them"}, deletionRoutes{uc.Deletion}.routes(),
		},
		{Tag{"Databases", "Databases and their lifecycle"}, databaseRoutes{uc.Databases}.routes()},
		{Tag{"Allowlist", "Networks that may connect to a database"}, allowlistRoutes{uc.Allowlist}.routes()},
		{Tag{"Query timeouts", "How long the sessions of a database may take"}, timeoutRoutes{uc.QueryTimeouts}.routes()},
		{Tag{"Backups", "Backup files of a database"}, backupRoutes{uc.Backups}.routes()},
		{Tag{"Certificates", "Signed proofs that backups can be restored"}, certificateRoutes{uc.Certificates}.routes()},
		{
			Tag{"Restores", "Bringing a database back to one of its backups, or to a dump of your own"},
			slices.Concat(restoreRoutes{uc.Restores}.routes(), uploadRoutes{uc.Uploads}.routes()),
		},
		{Tag{"Clones", "New databases that begin with what others hold"}, cloneRoutes{uc.Clones}.routes()},
		{
			Tag{"Previews", "Short-lived databases for CI, for synthetic test data only; they need a preview CI key"},
			previewRoutes{uc.Previews}.routes(),
		},
		{Tag{"Extensions", "PostgreSQL extensions of a database"}, extensionRoutes{uc.Extensions}.routes()},
		{Tag{"CI tokens", "Keys for pipelines that store none"}, tokenRoutes{uc.CITokens}.routes()},
		{Tag{"Operations", "Asynchronous work and its progress"}, operationRoutes{uc.Operations}.routes()},
		{Tag{"Activity", "What was done to a database, and by whom"}, activityRoutes{uc.Activity}.routes()},
		{Tag{"Members", "People who may use a database beside its owner, and invitations"}, memberRoutes{uc.Members}.routes()},
		{Tag{"Webhooks", "Endpoints that are sent signed events"}, webhookRoutes{uc.Webhooks}.routes()},
		{Tag{"Additional roles", "Further logins of a database, each with its own password"}, customRoles{uc.Roles}.routes()},
		{
			Tag{"Legacy roles", "Further logins of a database with a single login, which an operator has activated"},
			legacyRoles{customRoles{uc.LegacyRoles.Roles}, uc.LegacyRoles}.routes(),
		},
		{Tag{"Managed logins", "The logins that were created with a database"}, managedRoles{uc.ManagedLogins}.routes()},
	} {
		for _, row := range area.rows {
			row.Tag = area.tag
			table = append(table, row)
		}
	}
	return table
}
