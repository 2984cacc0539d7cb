package plan

// Thing is what an action is done to, or makes.
type Thing string

// The things.
const (
	Nothing      Thing = ""
	Database     Thing = "database"               // with managed logins
	Single       Thing = "single-login database"  // with one login
	Preview      Thing = "preview"                //
	Role         Thing = "additional role"        //
	LegacyRole   Thing = "role of a single-login" //
	Backup       Thing = "backup"
	Entry        Thing = "allowlist entry"
	Member       Thing = "member"
	Invitation   Thing = "invitation"
	Webhook      Thing = "webhook"
	Key          Thing = "key"
	Upload       Thing = "upload"
	ReservedCopy Thing = "reserved restore"
)

// Phase is how far a thing is, as far as a plan supposes that all goes well.
type Phase string

// The phases. What is gone is done nothing to, but sometimes: who asks for it is to be refused.
const (
	There   Phase = "there"   // a database that is active, a role that is ready
	Stopped Phase = "stopped" // a database that is
	Deleted Phase = "deleted" // a database that can be recovered
	Opted   Phase = "opted"   // a single-login database that can have roles
	Revoked Phase = "revoked"
	Gone    Phase = "gone"
)

// Capability is something that the service can do for somebody.
type Capability struct {
	Do     Do
	Weight int     // how often it is chosen, relative to others
	On     []Thing // what it is done to, one of these; none: nothing
	In     []Phase // in which phases of that
	Makes  Thing
	Leaves Phase // what it is done to; empty: as it was
	Never  bool  // it is never waited for: callers drive it, or it answers when it is done
	// Ways are how it is done, each with the routes (by their names), commands of svc or commands of pgherd admin that this
	// takes.
	Ways map[Way][]string
}

var (
	running  = []Phase{There}
	standing = []Phase{There, Stopped}
	both     = []Thing{Database, Single}
	each     = []Thing{Database, Single, Preview}
)

// Catalog is all that a plan chooses from.
var Catalog = []Capability{
	// Databases
	{Do: "create a database", Weight: 10, Makes: Database, Never: true, Ways: map[Way][]string{
		API: {"createDatabase"}, Svc: {"svc databases create"}, Operator: {"database create"}}},
	{Do: "create a single-login database", Weight: 5, Makes: Single, Never: true, Ways: map[Way][]string{
		API: {"createDatabase"}, Svc: {"svc databases create"}, Operator: {"database create"}}},
	{Do: "stop", Weight: 3, On: each, In: running, Leaves: Stopped, Never: true, Ways: map[Way][]string{
		API: {"setDatabaseLifecycle"}, Dashboard: {"setDatabaseLifecycle"}, Svc: {"svc databases stop"}, Operator: {"database stop"}}},
	{Do: "start", Weight: 5, On: each, In: []Phase{Stopped}, Leaves: There, Never: true, Ways: map[Way][]string{
		API: {"setDatabaseLifecycle"}, Dashboard: {"setDatabaseLifecycle"}, Svc: {"svc databases start"},
		Operator: {"database start"}}},
	{Do: "restart", Weight: 2, On: each, In: running, Never: true, Ways: map[Way][]string{
		API: {"setDatabaseLifecycle"}, Dashboard: {"setDatabaseLifecycle"}, Svc: {"svc databases restart"}}},
	{Do: "label", Weight: 2, On: both, In: standing, Never: true, Ways: map[Way][]string{
		API: {"setDatabaseEnvironment"}, Dashboard: {"setDatabaseEnvironment"}, Svc: {"svc databases environment"}}},
	{Do: "choose daily backups", Weight: 2, On: both, In: standing, Never: true, Ways: map[Way][]string{
		API: {"setBackupPolicy"}, Dashboard: {"setBackupPolicy"}, Svc: {"svc databases backup-policy"}}},
	{Do: "choose query timeouts", Weight: 3, On: []Thing{Database, Single}, In: running, Never: true, Ways: map[Way][]string{
		API: {"setQueryTimeouts"}, Dashboard: {"setQueryTimeouts"}, Svc: {"svc databases timeouts-set"}}},
	{Do: "install an extension", Weight: 2, On: []Thing{Database}, In: running, Ways: map[Way][]string{
		API: {"changeExtension", "getExtensionOperation"}, Dashboard: {"changeExtension"},
		Svc: {"svc databases extensions install", "svc databases extensions status"}}},
	{Do: "upgrade an extension", Weight: 1, On: []Thing{Database}, In: running, Ways: map[Way][]string{
		API: {"changeExtension"}, Svc: {"svc databases extensions upgrade"}}},
	{Do: "delete", Weight: 4, On: both, In: standing, Leaves: Deleted, Ways: map[Way][]string{
		API: {"deleteDatabase"}, Dashboard: {"deleteDatabase"}, Svc: {"svc databases delete"}}},
	{Do: "recover", Weight: 5, On: each, In: []Phase{Deleted}, Leaves: There, Ways: map[Way][]string{
		API: {"recoverDatabase"}, Dashboard: {"recoverDatabase"}, Svc: {"svc databases recover"}}},
	{Do: "download a deletion backup", Weight: 2, On: both, In: []Phase{Deleted}, Never: true, Ways: map[Way][]string{
		API: {"downloadDeletionBackup"}}},
	{Do: "allow a network", Weight: 3, On: both, In: running, Makes: Entry, Never: true, Ways: map[Way][]string{
		API: {"addAllowlistEntry"}, Dashboard: {"addAllowlistEntry"}, Svc: {"svc databases allowlist add"}}},
	{Do: "disallow a network", Weight: 2, On: []Thing{Entry}, In: running, Leaves: Gone, Never: true, Ways: map[Way][]string{
		API: {"removeAllowlistEntry"}, Dashboard: {"removeAllowlistEntry"}, Svc: {"svc databases allowlist remove"}}},

	// Data
	{Do: "write", Weight: 30, On: each, In: running, Never: true, Ways: map[Way][]string{SQL: nil}},
	{Do: "hold a connection open", Weight: 8, On: append([]Thing{Role, LegacyRole}, each...), In: running, Never: true,
		Ways: map[Way][]string{SQL: nil}},

	// Backups, restores, clones
	{Do: "back up", Weight: 8, On: both, In: standing, Makes: Backup, Ways: map[Way][]string{
		API: {"startBackup"}, Dashboard: {"startBackup"}, Svc: {"svc backups create"}, Operator: {"database backup"}}},
	{Do: "download", Weight: 3, On: []Thing{Backup}, In: running, Never: true, Ways: map[Way][]string{
		API: {"downloadBackup"}, Svc: {"svc backups download"}}},
	{Do: "prove a backup", Weight: 1, On: []Thing{Backup}, In: running, Never: true, Ways: map[Way][]string{
		API: {"getBackupCertificate", "listCertificateKeys"}, Svc: {"svc backups certificate"}}},
	{Do: "delete a backup", Weight: 2, On: []Thing{Backup}, In: running, Leaves: Gone, Never: true, Ways: map[Way][]string{
		API: {"deleteBackup"}, Dashboard: {"deleteBackup"}, Svc: {"svc backups delete"}}},
	{Do: "restore", Weight: 3, On: []Thing{Backup}, In: running, Ways: map[Way][]string{
		API: {"restoreBackup", "reserveManagedRestore", "advanceManagedRestore"}, Svc: {"svc backups restore"},
		Operator: {"database restore"}}},
	{Do: "upload a dump", Weight: 1, On: []Thing{Single}, In: running, Ways: map[Way][]string{
		API: {"announceUpload", "sendUpload", "completeUpload"}, Svc: {"svc backups upload"}}},
	{Do: "clone", Weight: 4, On: both, In: running, Makes: Database, Ways: map[Way][]string{
		API: {"cloneDatabase"}, Svc: {"svc databases clone"}, Operator: {"database clone"}}},
	{Do: "clone a backup", Weight: 2, On: []Thing{Backup}, In: running, Makes: Database, Ways: map[Way][]string{
		API: {"cloneDatabase"}, Svc: {"svc databases clone"}}},
	{Do: "clone a moment", Weight: 2, On: both, In: running, Makes: Database, Ways: map[Way][]string{
		API: {"cloneDatabase"}, Svc: {"svc databases clone"}}},
	{Do: "rewind", Weight: 1, On: []Thing{Single}, In: running, Ways: map[Way][]string{
		API: {"restoreBackup"}, Svc: {"svc databases rewind"}}},
	{Do: "rescue a table", Weight: 1, On: both, In: running, Ways: map[Way][]string{
		API: {"rescueTables"}, Svc: {"svc databases rescue"}}},
	{Do: "compare moments", Weight: 1, On: both, In: running, Ways: map[Way][]string{
		API: {"compareMoments"}, Svc: {"svc databases diff"}}},
	{Do: "find a moment", Weight: 1, On: both, In: running, Ways: map[Way][]string{
		API: {"findMoment"}, Svc: {"svc databases bisect"}}},
	{Do: "cancel what is open", Weight: 3, On: both, In: standing, Never: true, Ways: map[Way][]string{
		API: {"cancelOperation"}, Dashboard: {"cancelOperation"}, Svc: {"svc operations cancel"}, Operator: {"operation cancel"}}},

	// Logins
	{Do: "create a role", Weight: 7, On: []Thing{Database}, In: running, Makes: Role, Never: true, Ways: map[Way][]string{
		API: {"createRole", "prepareRole", "admitRole"},
		Svc: {"svc managed custom-create", "svc managed custom-prepare", "svc managed custom-admit"}}},
	{Do: "rename a role", Weight: 1, On: []Thing{Role}, In: []Phase{There, Revoked}, Never: true, Ways: map[Way][]string{
		API: {"renameRole"}, Dashboard: {"renameRole"}, Svc: {"svc managed custom-rename"}}},
	{Do: "reveal a role", Weight: 3, On: []Thing{Role}, In: running, Never: true, Ways: map[Way][]string{
		API: {"revealRole"}, Svc: {"svc managed custom-credentials"}}},
	{Do: "rotate a role", Weight: 5, On: []Thing{Role}, In: running, Never: true, Ways: map[Way][]string{
		API: {"changeRole", "getRoleChange", "continueRoleChange"}, Dashboard: {"changeRole"},
		Svc: {"svc managed custom-rotate", "svc managed custom-change"}}},
	{Do: "revoke a role", Weight: 2, On: []Thing{Role}, In: running, Leaves: Revoked, Never: true, Ways: map[Way][]string{
		API: {"changeRole"}, Dashboard: {"changeRole"}, Svc: {"svc managed custom-revoke"}}},
	{Do: "delete a role", Weight: 2, On: []Thing{Role}, In: []Phase{There, Revoked}, Leaves: Gone, Never: true,
		Ways: map[Way][]string{
			API: {"deleteRole", "removeRole"}, Svc: {"svc managed custom-delete"}}},
	{Do: "activate for roles", Weight: 2, On: []Thing{Single}, In: []Phase{There, Opted}, Never: true, Ways: map[Way][]string{
		Operator: {"legacy-roles deactivate", "legacy-roles activate"}}},
	{Do: "opt in for roles", Weight: 3, On: []Thing{Single}, In: running, Leaves: Opted, Never: true, Ways: map[Way][]string{
		API: {"optInLegacyRoles"}, Dashboard: {"optInLegacyRoles"}, Svc: {"svc legacy-roles opt-in"}}},
	{Do: "create a legacy role", Weight: 3, On: []Thing{Single}, In: []Phase{Opted}, Makes: LegacyRole, Never: true,
		Ways: map[Way][]string{
			API: {"createLegacyRole", "prepareLegacyRole", "admitLegacyRole", "reconcileLegacyRole"},
			Svc: {"svc legacy-roles create", "svc legacy-roles prepare", "svc legacy-roles admit", "svc legacy-roles reconcile"}}},
	{Do: "rotate a legacy role", Weight: 2, On: []Thing{LegacyRole}, In: running, Never: true, Ways: map[Way][]string{
		API: {"changeLegacyRole", "getLegacyRoleChange", "continueLegacyRoleChange", "revealLegacyRole"},
		Svc: {"svc legacy-roles rotate", "svc legacy-roles change", "svc legacy-roles credentials"}}},
	{Do: "remove a legacy role", Weight: 1, On: []Thing{LegacyRole}, In: running, Leaves: Gone, Never: true, Ways: map[Way][]string{
		API: {"removeLegacyRole"}, Svc: {"svc legacy-roles revoke", "svc legacy-roles delete"}}},
	{Do: "reveal a login", Weight: 2, On: []Thing{Database}, In: running, Never: true, Ways: map[Way][]string{
		API: {"revealLogin"}, Svc: {"svc managed logins-credentials"}}},
	{Do: "rotate a login", Weight: 4, On: []Thing{Database}, In: running, Never: true, Ways: map[Way][]string{
		API: {"rotateLogin"}, Svc: {"svc managed logins-rotate"}}},
	{Do: "rotate the owner", Weight: 3, On: []Thing{Database}, In: running, Never: true, Ways: map[Way][]string{
		API: {"rotateLogin"}, Svc: {"svc managed logins-rotate"}, Operator: {"database rotate-owner"}}},

	// Previews
	{Do: "create a preview", Weight: 4, Makes: Preview, Never: true, Ways: map[Way][]string{
		API: {"createPreview", "findPreview", "getPreview"}, Svc: {"svc previews create", "svc previews get"}}},
	{Do: "extend a preview", Weight: 2, On: []Thing{Preview}, In: running, Never: true, Ways: map[Way][]string{
		API: {"extendPreview"}, Svc: {"svc previews extend"}}},
	{Do: "choose daily backups of a preview", Weight: 1, On: []Thing{Preview}, In: running, Never: true, Ways: map[Way][]string{
		API: {"setPreviewBackupPolicy"}, Svc: {"svc previews backup-policy"}}},
	{Do: "delete a preview", Weight: 2, On: []Thing{Preview}, In: standing, Leaves: Deleted, Never: true, Ways: map[Way][]string{
		API: {"deletePreview"}, Svc: {"svc previews delete"}}},

	// People, keys, webhooks
	{Do: "add a member", Weight: 2, On: both, In: running, Makes: Member, Never: true, Ways: map[Way][]string{
		API: {"addMember"}, Dashboard: {"addMember"}, Svc: {"svc members add"}}},
	{Do: "change a member", Weight: 1, On: []Thing{Member}, In: running, Never: true, Ways: map[Way][]string{
		API: {"setMemberRole"}, Dashboard: {"setMemberRole"}, Svc: {"svc members update"}}},
	{Do: "remove a member", Weight: 1, On: []Thing{Member}, In: running, Leaves: Gone, Never: true, Ways: map[Way][]string{
		API: {"removeMember"}, Dashboard: {"removeMember"}, Svc: {"svc members remove"}, Operator: {"member remove"}}},
	{Do: "invite", Weight: 2, On: both, In: running, Makes: Invitation, Never: true, Ways: map[Way][]string{
		API: {"addMember"}, Dashboard: {"addMember"}, Svc: {"svc members add"}}},
	{Do: "invite again", Weight: 1, On: []Thing{Invitation}, In: running, Never: true, Ways: map[Way][]string{
		API: {"resendInvitation"}, Dashboard: {"resendInvitation"}, Svc: {"svc invitations resend"}}},
	{Do: "accept an invitation", Weight: 1, On: []Thing{Invitation}, In: running, Leaves: Gone, Never: true, Ways: map[Way][]string{
		API: {"acceptInvitation"}}},
	{Do: "withdraw an invitation", Weight: 1, On: []Thing{Invitation}, In: running, Leaves: Gone, Never: true,
		Ways: map[Way][]string{
			API: {"deleteInvitation"}, Dashboard: {"deleteInvitation"}, Svc: {"svc invitations remove"}}},
	{Do: "add a webhook", Weight: 2, Makes: Webhook, Never: true, Ways: map[Way][]string{
		API: {"createWebhook"}, Svc: {"svc webhooks create"}}},
	{Do: "try a webhook", Weight: 2, On: []Thing{Webhook}, In: running, Never: true, Ways: map[Way][]string{
		API: {"testWebhook", "listDeliveryAttempts", "redeliverEvent"}, Dashboard: {"testWebhook"},
		Svc: {"svc webhooks test", "svc webhooks deliveries", "svc webhooks redeliver"}}},
	{Do: "rotate a webhook", Weight: 2, On: []Thing{Webhook}, In: []Phase{There, Stopped}, Leaves: There, Never: true,
		Ways: map[Way][]string{
			API: {"rotateWebhookSecret"}, Svc: {"svc webhooks rotate"}}},
	{Do: "disable a webhook", Weight: 1, On: []Thing{Webhook}, In: running, Leaves: Stopped, Never: true, Ways: map[Way][]string{
		API: {"disableWebhook"}, Dashboard: {"disableWebhook"}, Svc: {"svc webhooks disable"}}},
	{Do: "make a key", Weight: 2, Makes: Key, Never: true, Ways: map[Way][]string{Operator: {"key create", "key set"}}},
	{Do: "replace a key", Weight: 1, On: []Thing{Key}, In: running, Never: true, Ways: map[Way][]string{Operator: {"key replace"}}},
	{Do: "revoke a key", Weight: 1, On: []Thing{Key}, In: running, Leaves: Gone, Never: true, Ways: map[Way][]string{
		Operator: {"key revoke"}}},

	{Do: "make and revoke a CI key", Weight: 1, Never: true, Ways: map[Way][]string{
		Operator: {"ci-namespace create", "ci-key create", "ci-key revoke", "ci-key list", "ci-trust list", "ci-namespace revoke"}}},
	{Do: "exchange a CI token", Weight: 2, Never: true, Ways: map[Way][]string{
		API: {"addTrust", "exchangeToken", "removeTrust"}, Svc: {"svc trusts add", "svc auth ci", "svc trusts remove"},
		Operator: {"ci-trust add", "ci-trust remove"}}},
	{Do: "make a user", Weight: 1, Never: true, Ways: map[Way][]string{
		Operator: {"user create", "user invite", "operator add", "operator remove"}}},
	{Do: "log in anew", Weight: 1, Never: true, Ways: map[Way][]string{
		Operator: {"user link", "user end-sessions", "user reset-factors"}}},

	// The operator's
	{Do: "move", Weight: 2, On: both, In: running, Ways: map[Way][]string{Operator: {"database move"}}},
	{Do: "move closed", Weight: 2, On: both, In: standing, Ways: map[Way][]string{Operator: {"database move"}}},
	{Do: "rehearse a move", Weight: 1, On: both, In: running, Ways: map[Way][]string{Operator: {"database rehearse"}}},
	{Do: "drain a server", Weight: 1, Never: true, Ways: map[Way][]string{
		Operator: {"server drain", "server set", "server disable", "server enable"}}},
	{Do: "end a forward", Weight: 1, On: both, In: running, Never: true, Ways: map[Way][]string{
		Operator: {"forward list", "forward end"}}},
	{Do: "suspend and resume", Weight: 1, Never: true, Ways: map[Way][]string{Operator: {"account suspend", "account resume"}}},
	{Do: "change quotas", Weight: 1, Never: true, Ways: map[Way][]string{Operator: {"account set", "account show"}}},
	{Do: "exchange the key ring's key", Weight: 1, Never: true, Ways: map[Way][]string{
		Operator: {"secrets rotate", "secrets stage", "secrets unstage", "secrets promote", "secrets prune", "secrets keys",
			"secrets hosts"}}},
	{Do: "exchange the certificate key", Weight: 1, Never: true, Ways: map[Way][]string{
		Operator: {"certificate-key rotate", "certificate-key list"}}},
	{Do: "snapshot the metadata", Weight: 1, Never: true, Ways: map[Way][]string{Operator: {"installation snapshot"}}},
	{Do: "prove the archive", Weight: 1, On: both, In: running, Never: true, Ways: map[Way][]string{
		Operator: {"drill run", "drill list"}}},
	{Do: "have the doctor repair", Weight: 1, Never: true, Ways: map[Way][]string{Operator: {"doctor"}}},
	{Do: "switch a feature", Weight: 1, Never: true, Ways: map[Way][]string{Operator: {"feature disable", "feature enable"}}},
	{Do: "unenroll and enroll", Weight: 1, On: both, In: standing, Never: true, Ways: map[Way][]string{
		Operator: {"unenroll", "enroll"}}},
	{Do: "qualify extensions", Weight: 1, Never: true, Ways: map[Way][]string{Operator: {"extensions qualify"}}},
	{Do: "close for maintenance", Weight: 1, Never: true, Ways: map[Way][]string{Operator: {"maintenance"}}},
	{Do: "read what operators do", Weight: 2, Never: true, Ways: map[Way][]string{Operator: {
		"account list", "server list", "server show", "server check", "database list", "database show", "database movable",
		"backup list",
		"operation list", "operation show", "change list", "audit list", "usage", "key list", "member list", "storage check",
		"feature list", "user sessions", "ci-namespace list", "operator list", "extensions list",
		"enroll list", "legacy-roles list",
	}}},

	// Looks
	{Do: "read a database", Weight: 5, On: both, In: standing, Never: true, Ways: map[Way][]string{
		API: {"getDatabase", "listBackups", "listOperations", "getOperation", "listActivity", "listAllowlistEntries",
			"getQueryTimeouts", "getSlowQueries", "listMembers", "listInvitations", "listExtensions", "getUsage", "getRecoveryWindow",
			"getRecoveryCertificate", "listRoles", "listLegacyRoles", "listLogins"},
		Dashboard: {"getDatabase", "listBackups", "listActivity"},
		Svc: {"svc databases get", "svc backups list", "svc operations list", "svc operations get", "svc databases allowlist list",
			"svc databases timeouts", "svc databases slow-queries", "svc members list", "svc invitations list",
			"svc databases extensions", "svc databases usage", "svc databases window", "svc databases certificate",
			"svc managed custom-list", "svc legacy-roles list", "svc managed logins", "svc connect"}}},
	{Do: "read an account", Weight: 4, Never: true, Ways: map[Way][]string{
		API:       {"listDatabases", "listDeletedDatabases", "listUsage", "listWebhooks", "listCINamespaces", "listTrusts"},
		Dashboard: {"listDatabases", "listDeletedDatabases", "listWebhooks"},
		Svc: {"svc databases list", "svc databases deleted", "svc usage", "svc webhooks list", "svc trusts namespaces",
			"svc trusts list", "svc auth status"}}},
}
