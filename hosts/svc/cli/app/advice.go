package app

import "github.com/pgherd/pgherd/core/fault"

const (
	misfit   = "svc and the service are of different versions, or a proxy between them changes requests: check both"
	onceMore = "repeat the command; if that does not help, tell the operator the request ID"
	later    = "try again later, or with a longer --timeout"
)

// Advice is what to do after a refusal. Where a command knows better, as from its arguments, it says so itself.
var Advice = map[fault.Code]string{
	// What the key and the plan do not allow.
	fault.Unauthorized:          `the key is unknown, revoked or expired: log in with another one, "svc auth login --api-key -"`,
	fault.KeyScopeDenied:        "this needs a key with full access to the account, and the key is for selected databases",
	fault.AccountSuspended:      "ask the operator of the service: only the operator resumes the account",
	fault.PlanAPIAccessRequired: "the API needs a Pro or Business plan",
	fault.PlanLimit:             "delete a database that is no longer needed, or change the plan",
	fault.Forbidden:             `ask an admin or the owner of the database: "svc members list DATABASE" shows who they are`,
	fault.FeatureNotAvailable:   "ask the operator of the service to enable this for the database",

	// What is not there.
	fault.UploadNotFound:             "repeat this command: an upload has an hour, and another one of the database ends it",
	fault.DatabaseNotFound:           `"svc databases list" shows what the key can see`,
	fault.InvalidBackupFilename:      `"svc backups list DATABASE" shows the backups`,
	fault.BackupNotFound:             `"svc backups list DATABASE" shows the backups`,
	fault.DeletionBackupNotAvailable: `"svc databases deleted" shows the deleted databases`,
	fault.CertificateNotFound:        `"svc databases window DATABASE" shows the last drill`,
	fault.WebhookNotFound:            `"svc webhooks list" shows the webhooks`,
	fault.OperationNotFound:          `"svc operations list DATABASE" shows the operations`,
	fault.RoleNotFound:               `"svc managed custom-list DATABASE" and "svc legacy-roles list DATABASE" show the roles`,
	fault.MemberNotFound:             `"svc members list DATABASE" shows the members`,
	fault.InvitationNotFound:         `"svc invitations list DATABASE" shows the invitations`,
	fault.AllowlistEntryNotFound:     `"svc databases allowlist list DATABASE" shows the entries`,
	fault.PreviewNotFound:            `"svc previews create REF" makes the preview of a ref, "svc previews get --ref REF" shows it`,
	fault.NamespaceNotFound:          `"svc trusts namespaces" shows the CI namespaces`,
	fault.TrustNotFound:              `"svc trusts list NAMESPACE" shows the trusts`,
	fault.RouteNotFound:              "check the path in the URL, and that the service is as new as svc",

	// What the state of something forbids.
	fault.DatabaseStateConflict:     `"svc databases get DATABASE" and "svc operations list DATABASE" show how it stands`,
	fault.BackupConflict:            `"svc operations list DATABASE" shows what is under way`,
	fault.QueryTimeoutConflict:      `"svc databases timeouts DATABASE" shows the last change`,
	fault.MemberConflict:            `"svc members list DATABASE" shows the owner, the members and the invited`,
	fault.ManagedRoleConflict:       `"svc databases get DATABASE" and "svc managed custom-list DATABASE" show how it stands`,
	fault.LegacyRoleConflict:        `"svc databases get DATABASE" and "svc legacy-roles list DATABASE" show how it stands`,
	fault.PreviewLeaseEnded:         `"svc previews create REF" makes another one, once the service has deleted this one`,
	fault.ConnectGrantRequired:      "run the statement above as the database's owner, then repeat this command",
	fault.RoleDependencies:          "reassign or drop what depends on the role, then repeat this command",
	fault.CustomRoleRequiresV3Clone: "make another clone, of the source as it is now or of a newer backup",
	fault.ExtensionMutationUnavailable: `"svc databases extensions DATABASE" and "svc operations list DATABASE" show how it ` +
		"stands",
	fault.QueryTimeoutCloneRequiresReconfigure: `choose the profile by "svc databases timeouts-set DATABASE standard", then ` +
		"repeat this command",
	fault.PreviewConflict: "repeat the --ttl and --scheduled-backup of the request that made the preview, or wait until it is " +
		"deleted",
	fault.BackupNotVerified: `"svc backups list DATABASE" shows which are verified; "svc backups create DATABASE" makes ` +
		"another one",
	fault.PointNotRecoverable:    `"svc databases window DATABASE" shows what can be had back, and what is missing`,
	fault.InvalidWebhookEndpoint: `"svc webhooks list" shows the webhooks; "svc webhooks rotate" enables one that is disabled`,

	// What svc does not send.
	fault.InvalidJSON:          misfit,
	fault.MethodNotAllowed:     misfit,
	fault.LengthRequired:       misfit,
	fault.PayloadTooLarge:      misfit,
	fault.UnsupportedMediaType: misfit,
	fault.HeaderTooLarge:       misfit,

	// What passes, and what others have to do something about.
	fault.RequestTimeout:           "nothing was done, as the request did not arrive in time: repeat the command",
	fault.RateLimited:              later,
	fault.ServerBusy:               later,
	fault.Maintenance:              "the service is in maintenance: " + later,
	fault.FeatureDisabled:          "the operator of the service has turned this off: try again later",
	fault.AgentError:               onceMore,
	fault.InternalError:            onceMore,
	fault.WebhookRotationFailed:    onceMore,
	fault.WebhookUpdateFailed:      onceMore,
	fault.BackupStorageUnavailable: later,
	fault.AgentRouteUnavailable:    "ask the operator of the service to update the agent on the database's server",
	fault.BackupStorageFull: `"svc backups delete DATABASE BACKUP" makes room; else ask the operator of the service for ` +
		"more",
}
