package fault

// Code is a machine-readable error code of the API.
type Code string

// The codes of the spec, section "Errors", and further ones of this service.
const (
	ValidationError                      Code = "VALIDATION_ERROR"
	InvalidJSON                          Code = "INVALID_JSON"
	InvalidBackupFilename                Code = "INVALID_BACKUP_FILENAME"
	InvalidWebhookEndpoint               Code = "INVALID_WEBHOOK_ENDPOINT"
	Unauthorized                         Code = "UNAUTHORIZED"
	KeyScopeDenied                       Code = "KEY_SCOPE_DENIED"
	PlanAPIAccessRequired                Code = "PLAN_API_ACCESS_REQUIRED"
	AccountSuspended                     Code = "ACCOUNT_SUSPENDED"
	PlanLimit                            Code = "PLAN_LIMIT"
	Forbidden                            Code = "FORBIDDEN"
	LoginRequired                        Code = "LOGIN_REQUIRED"
	FeatureNotAvailable                  Code = "FEATURE_NOT_AVAILABLE"
	DatabaseNotFound                     Code = "DATABASE_NOT_FOUND"
	BackupNotFound                       Code = "BACKUP_NOT_FOUND"
	DeletionBackupNotAvailable           Code = "DELETION_BACKUP_NOT_AVAILABLE"
	CertificateNotFound                  Code = "CERTIFICATE_NOT_FOUND"
	WebhookNotFound                      Code = "WEBHOOK_NOT_FOUND"
	OperationNotFound                    Code = "OPERATION_NOT_FOUND"
	RoleNotFound                         Code = "ROLE_NOT_FOUND"
	MemberNotFound                       Code = "MEMBER_NOT_FOUND"
	InvitationNotFound                   Code = "INVITATION_NOT_FOUND"
	AllowlistEntryNotFound               Code = "ALLOWLIST_ENTRY_NOT_FOUND"
	PreviewNotFound                      Code = "PREVIEW_NOT_FOUND"
	NamespaceNotFound                    Code = "NAMESPACE_NOT_FOUND"
	TrustNotFound                        Code = "TRUST_NOT_FOUND"
	UploadNotFound                       Code = "UPLOAD_NOT_FOUND"
	RouteNotFound                        Code = "ROUTE_NOT_FOUND"
	MethodNotAllowed                     Code = "METHOD_NOT_ALLOWED"
	ManagedRoleConflict                  Code = "MANAGED_ROLE_CONFLICT"
	ConnectGrantRequired                 Code = "CONNECT_GRANT_REQUIRED"
	CustomRoleRequiresV3Clone            Code = "CUSTOM_ROLE_REQUIRES_V3_CLONE"
	RoleDependencies                     Code = "ROLE_DEPENDENCIES"
	RestoreOperationTerminal             Code = "RESTORE_OPERATION_TERMINAL"
	ExtensionMutationUnavailable         Code = "EXTENSION_MUTATION_UNAVAILABLE"
	QueryTimeoutCloneRequiresReconfigure Code = "QUERY_TIMEOUT_CLONE_REQUIRES_RECONFIGURATION"
	DatabaseStateConflict                Code = "DATABASE_STATE_CONFLICT"
	PreviewConflict                      Code = "PREVIEW_CONFLICT"
	PreviewLeaseEnded                    Code = "PREVIEW_LEASE_ENDED"
	QueryTimeoutConflict                 Code = "QUERY_TIMEOUT_CONFLICT"
	LegacyRoleConflict                   Code = "LEGACY_ROLE_CONFLICT"
	MemberConflict                       Code = "MEMBER_CONFLICT"
	BackupConflict                       Code = "BACKUP_CONFLICT"
	BackupNotVerified                    Code = "BACKUP_NOT_VERIFIED"
	PointNotRecoverable                  Code = "POINT_NOT_RECOVERABLE"
	RequestTimeout                       Code = "REQUEST_TIMEOUT"
	LengthRequired                       Code = "LENGTH_REQUIRED"
	HeaderTooLarge                       Code = "HEADER_TOO_LARGE"
	PayloadTooLarge                      Code = "PAYLOAD_TOO_LARGE"
	UnsupportedMediaType                 Code = "UNSUPPORTED_MEDIA_TYPE"
	RateLimited                          Code = "RATE_LIMITED"
	AgentError                           Code = "AGENT_ERROR"
	InternalError                        Code = "INTERNAL_ERROR"
	WebhookRotationFailed                Code = "WEBHOOK_ROTATION_FAILED"
	WebhookUpdateFailed                  Code = "WEBHOOK_UPDATE_FAILED"
	AgentRouteUnavailable                Code = "AGENT_ROUTE_UNAVAILABLE"
	ServerBusy                           Code = "SERVER_BUSY"
	FeatureDisabled                      Code = "FEATURE_DISABLED"
	Maintenance                          Code = "MAINTENANCE"
	BackupStorageFull                    Code = "BACKUP_STORAGE_FULL"
	BackupStorageUnavailable             Code = "BACKUP_STORAGE_UNAVAILABLE"
	// The next ones appear only as error.code inside a failed operation.
	ExtensionPreparationFailed Code = "EXTENSION_PREPARATION_FAILED"
	UploadIncomplete           Code = "UPLOAD_INCOMPLETE"
	RestoreShrinks             Code = "RESTORE_SHRINKS"
)

// Entry is one row of the table of codes.
type Entry struct {
	Code    Code
	Status  int // HTTP status; 0 for a code that appears only inside an operation
	Meaning string
}

// Table lists every code once, in the order of docs/use/errors.md. No other code may be used.
var Table = []Entry{
	{ValidationError, 400, "missing or invalid field, invalid ID, unexpected body field, missing confirmation, missing or invalid Idempotency-Key, non-empty body where none is allowed"},
	{InvalidJSON, 400, "the body is not valid JSON"},
	{InvalidBackupFilename, 400, "the file name is not that of a backup"},
	{InvalidWebhookEndpoint, 400, "URL breaks a URL rule, databaseId is not owned, too many endpoints are enabled, or the endpoint is disabled"},
	{Unauthorized, 401, "missing or invalid key, or a CI token that is refused"},
	{KeyScopeDenied, 403, "the key is valid, but its kind or scope does not allow this route"},
	{AccountSuspended, 403, "the operator of the service has suspended the account, and the message says why; or that of the database's owner"},
	{PlanAPIAccessRequired, 403, "the account is not on a Pro or Business plan"},
	{PlanLimit, 403, "the plan does not allow API access or more databases, or has no recovery to a point in time"},
	{Forbidden, 403, "the caller may see this but not do it"},
	{LoginRequired, 403, "this needs a recent log-in: only for people, never for a key"},
	{FeatureNotAvailable, 403, "limited-rollout or feature-gated route for a target that is not enrolled, or the installation sends no " +
		"mails to invite people, has no key to sign certificates with, or the database server does not count statements or keeps no archive"},
	{DatabaseNotFound, 404, "missing, not owned, or out of key scope"},
	{BackupNotFound, 404, "the backup file does not exist"},
	{DeletionBackupNotAvailable, 404, "no deletion backup is available for this database"},
	{CertificateNotFound, 404, "no moment of the database was proven by a drill"},
	{WebhookNotFound, 404, "no such endpoint in the account"},
	{OperationNotFound, 404, "no such operation in the key's scope"},
	{RoleNotFound, 404, "no such role on this database"},
	{MemberNotFound, 404, "no such member of this database"},
	{InvitationNotFound, 404, "no such invitation to this database, or its token is unknown, used or expired"},
	{AllowlistEntryNotFound, 404, "no such allowlist entry of this database"},
	{PreviewNotFound, 404, "no such preview in the key's namespace"},
	{NamespaceNotFound, 404, "no such CI namespace in the account"},
	{TrustNotFound, 404, "no such trust of this CI namespace"},
	{UploadNotFound, 404, "no such restore upload, or it has expired, was replaced by another one, or is complete"},
	{RouteNotFound, 404, "no such route"},
	{MethodNotAllowed, 405, "the route exists, but not with this method"},
	{ManagedRoleConflict, 409, "the state of the role or database forbids the action, the server has rejected it permanently, or the " +
		"idempotency key was used with a different request"},
	{ConnectGrantRequired, 409, "run grantSql as the owner, then retry"},
	{CustomRoleRequiresV3Clone, 409, "the database was cloned from a backup that predates additional roles"},
	{RoleDependencies, 409, "the role owns objects or holds grants"},
	{RestoreOperationTerminal, 409, "key refers to a failed or canceled restore"},
	{ExtensionMutationUnavailable, 409, "the state of the extension, the database or its server forbids the request, or the idempotency key was used with a different request"},
	{QueryTimeoutCloneRequiresReconfigure, 409, "the database has a profile of query timeouts, which a clone does not take over"},
	{DatabaseStateConflict, 409, "the database's status or an open operation forbids the action, or an idempotency key is reused with a different request"},
	{PreviewConflict, 409, "the same ref was used with other choices, or the preview's state forbids the action"},
	{PreviewLeaseEnded, 409, "an expired or deleting lease cannot be renewed"},
	{QueryTimeoutConflict, 409, "another query-timeout change is open, or the key was used for another profile"},
	{LegacyRoleConflict, 409, "the role, overlay or database state forbids the action"},
	{MemberConflict, 409, "the owner cannot be a member, too many invitations are open, or the database has too many members"},
	{BackupConflict, 409, "the backup is in use, another backup is open, the database has too many tables for a certificate or for the locks of its server, its tables were emptied or changed whenever it was dumped, or a part of an upload " +
		"does not follow the one before, comes beside another one, or is missing"},
	{BackupNotVerified, 409, "the backup file did not come back equal to the database, and the message names statement, object and SQLSTATE; " +
		"or it was never restored and compared, so that it has no certificate"},
	{PointNotRecoverable, 409, "the database cannot be had back as it was at that moment; the message says from when on it can, or which " +
		"time is missing"},
	{RequestTimeout, 408, "the request header or body did not arrive in time"},
	{LengthRequired, 411, "an upload needs a Content-Length"},
	{PayloadTooLarge, 413, "the body is larger than the API limit"},
	{UnsupportedMediaType, 415, "the body is not application/json, or an upload not application/gzip or application/octet-stream"},
	{RateLimited, 429, "too many requests for the route, too many concurrent requests of the account, too many invitations, or too many " +
		"attempts without a valid key"},
	{HeaderTooLarge, 431, "the request header is larger than the API limit"},
	{AgentError, 500, "the database server is away, and `Retry-After` says when to ask again; or it has failed, and the message says at what (create, lifecycle, allowlist, query timeouts, extensions, slow queries, recovery windows, backup start, delete or " +
		"download, role setup or reveal), or no database server has room (create, recover)"},
	{InternalError, 500, "retry the same request"},
	{WebhookRotationFailed, 500, "retry"},
	{WebhookUpdateFailed, 500, "retry"},
	{AgentRouteUnavailable, 503, "backup deletion, download and certificates, query timeouts, extensions, slow queries, recovery to a point in time, " +
		"restores and the reconcile of legacy roles are unavailable until the agent is updated"},
	{ServerBusy, 503, "the database server is at its limit of concurrent downloads, uploads or requests, too many certificates are being made, " +
		"too many people accept invitations " +
		"at the moment, more requests come than can be served, or the service cannot reach its own data; retry later"},
	{BackupStorageUnavailable, 503, "where backups are kept does not answer; retry later"},
	{FeatureDisabled, 503, "additional roles are temporarily unavailable"},
	{Maintenance, 503, "maintenance window; retry later"},
	{BackupStorageFull, 507, "the account's quota for the backups of the database is used up, it has too many uploads, or the server has no room for " +
		"another backup or upload; the message says which"},
	{ExtensionPreparationFailed, 0, "an extension operation failed before any change"},
	{UploadIncomplete, 0, "a dump that was uploaded makes nothing, or does not end with pg_dump's closing line; the database is as it was"},
	{RestoreShrinks, 0, "a restore that would remove more than nine tenths of the rows or tables of a database wants confirmShrink; the database is as it was"},
}

var statusByCode = func() map[Code]int {
	m := make(map[Code]int, len(Table))
	for _, e := range Table {
		m[e.Code] = e.Status
	}
	return m
}()

// Values lists the codes in the order of the table.
func (Code) Values() []Code {
	codes := make([]Code, len(Table))
	for i, e := range Table {
		codes[i] = e.Code
	}
	return codes
}

// Meaning returns what the table says of a code.
func (c Code) Meaning() string {
	for _, e := range Table {
		if e.Code == c {
			return e.Meaning
		}
	}
	return ""
}

// Status returns the HTTP status of a code; 500 for a code that has none.
func (c Code) Status() int {
	if s := statusByCode[c]; s != 0 {
		return s
	}
	return 500
}

// Known reports whether the table contains the code.
func (c Code) Known() bool { _, ok := statusByCode[c]; return ok }
