// Code generated from the table of routes by "make generate"; DO NOT EDIT.

package apiclient

import (
	"context"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Calls are the calls of the API, by what they are about.
type Calls struct {
	Databases     Databases
	Allowlist     Allowlist
	QueryTimeouts QueryTimeouts
	SlowQueries   SlowQueries
	Backups       Backups
	Recovery      Recovery
	Certificates  Certificates
	Restores      Restores
	Previews      Previews
	Extensions    Extensions
	CITokens      CITokens
	CINamespaces  CINamespaces
	Operations    Operations
	Usage         Usage
	Activity      Activity
	Members       Members
	Webhooks      Webhooks
	Roles         Roles
	LegacyRoles   LegacyRoles
	Logins        Logins
}

func callsOf(c *Client) Calls {
	return Calls{
		Databases:     Databases{c},
		Allowlist:     Allowlist{c},
		QueryTimeouts: QueryTimeouts{c},
		SlowQueries:   SlowQueries{c},
		Backups:       Backups{c},
		Recovery:      Recovery{c},
		Certificates:  Certificates{c},
		Restores:      Restores{c},
		Previews:      Previews{c},
		Extensions:    Extensions{c},
		CITokens:      CITokens{c},
		CINamespaces:  CINamespaces{c},
		Operations:    Operations{c},
		Usage:         Usage{c},
		Activity:      Activity{c},
		Members:       Members{c},
		Webhooks:      Webhooks{c},
		Roles:         Roles{c},
		LegacyRoles:   LegacyRoles{c},
		Logins:        Logins{c},
	}
}

// Databases groups calls: databases and their lifecycle.
type Databases struct{ c *Client }

// ListDeleted sends GET /databases/deleted: list the deleted databases of the account, the one deleted last first.
func (x Databases) ListDeleted() Pages[wire.DeletedDatabase] {
	return Pages[wire.DeletedDatabase]{x.c, get("/databases/deleted")}
}

// Delete sends DELETE /databases/{id}: delete a database, which can be recovered for a while.
func (x Databases) Delete(ctx context.Context, databaseID id.DatabaseID, opts ...Option) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, x.c, remove("/databases/%s", databaseID), opts)
}

// DownloadDeletionBackup sends GET /databases/{id}/deletion-backup: download the backup that was made when a database was
// deleted. 200: the file; its ETag is its SHA-256. 206: the file from the byte on that Range names.
func (x Databases) DownloadDeletionBackup(ctx context.Context, databaseID id.DatabaseID, opts ...Option) (*Download, error) {
	return x.c.download(ctx, get("/databases/%s/deletion-backup", databaseID), opts)
}

// Recover sends POST /databases/{id}/recover: recover a deleted database; repeated requests get the same operation.
func (x Databases) Recover(ctx context.Context, databaseID id.DatabaseID, opts ...Option) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, x.c, post(nil, "/databases/%s/recover", databaseID).mayRepeat(), opts)
}

// List sends GET /databases: list the databases that the key can see.
func (x Databases) List() Pages[wire.Database] {
	return Pages[wire.Database]{x.c, get("/databases")}
}

// Create sends POST /databases: create a database.
func (x Databases) Create(ctx context.Context, b wire.CreateDatabase, opts ...Option) (wire.CreatedDatabase, error) {
	return ask[wire.CreatedDatabase](ctx, x.c, post(b, "/databases").withKey(), opts)
}

// Get sends GET /databases/{id}: get a database.
func (x Databases) Get(ctx context.Context, databaseID id.DatabaseID, opts ...Option) (wire.Database, error) {
	return ask[wire.Database](ctx, x.c, get("/databases/%s", databaseID), opts)
}

// SetEnvironment sends PATCH /databases/{id}/environment: set or remove the environment label of a database.
func (x Databases) SetEnvironment(
	ctx context.Context, databaseID id.DatabaseID, b wire.SetEnvironment, opts ...Option,
) (wire.EnvironmentChange, error) {
	return data[wire.EnvironmentChange](ctx, x.c, patch(b, "/databases/%s/environment", databaseID), opts)
}

// SetLifecycle sends POST /databases/{id}/lifecycle: start, stop or restart a database.
func (x Databases) SetLifecycle(
	ctx context.Context, databaseID id.DatabaseID, b wire.SetLifecycle, opts ...Option,
) (wire.LifecycleChange, error) {
	return data[wire.LifecycleChange](ctx, x.c, post(b, "/databases/%s/lifecycle", databaseID), opts)
}

// ConfirmUpgrade sends POST /databases/{id}/confirm-upgrade: confirm an upgrade of PostgreSQL, which ends the way back to the
// version before it.
func (x Databases) ConfirmUpgrade(ctx context.Context, databaseID id.DatabaseID, opts ...Option) (wire.ConfirmedUpgrade, error) {
	return data[wire.ConfirmedUpgrade](ctx, x.c, post(nil, "/databases/%s/confirm-upgrade", databaseID), opts)
}

// Clone sends POST /databases/{id}/clone: make a new database that begins with what this one holds, or held at a moment or in a
// backup.
func (x Databases) Clone(
	ctx context.Context, databaseID id.DatabaseID, b wire.CloneDatabase, opts ...Option,
) (wire.ClonedDatabase, error) {
	return ask[wire.ClonedDatabase](ctx, x.c, post(b, "/databases/%s/clone", databaseID).withKey(), opts)
}

// Allowlist groups calls: networks that may connect to a database.
type Allowlist struct{ c *Client }

// List sends GET /databases/{id}/network/allowlist: list the networks that may connect to a database.
func (x Allowlist) List(ctx context.Context, databaseID id.DatabaseID, opts ...Option) ([]wire.AllowlistEntry, error) {
	return data[[]wire.AllowlistEntry](ctx, x.c, get("/databases/%s/network/allowlist", databaseID), opts)
}

// Add sends POST /databases/{id}/network/allowlist: allow a network to connect to a database.
func (x Allowlist) Add(
	ctx context.Context, databaseID id.DatabaseID, b wire.AddAllowlistEntry, opts ...Option,
) (wire.AllowlistEntry, error) {
	return data[wire.AllowlistEntry](ctx, x.c, post(b, "/databases/%s/network/allowlist", databaseID), opts)
}

// Remove sends DELETE /databases/{id}/network/allowlist/{entryId}: remove a network from the allowlist of a database.
func (x Allowlist) Remove(ctx context.Context, databaseID id.DatabaseID, entryID id.AllowlistEntryID, opts ...Option) error {
	request := remove("/databases/%s/network/allowlist/%s", databaseID, entryID).ofGone(fault.AllowlistEntryNotFound)
	return tell(ctx, x.c, request, opts)
}

// QueryTimeouts groups calls: how long the sessions of a database may take.
type QueryTimeouts struct{ c *Client }

// Get sends GET /databases/{id}/query-timeouts: get the query timeouts of a database.
func (x QueryTimeouts) Get(ctx context.Context, databaseID id.DatabaseID, opts ...Option) (wire.QueryTimeouts, error) {
	return data[wire.QueryTimeouts](ctx, x.c, get("/databases/%s/query-timeouts", databaseID), opts)
}

// Set sends POST /databases/{id}/query-timeouts: choose a profile of query timeouts for a database. 200: the profile is in
// effect. 202: the change is open, and continues in the background.
func (x QueryTimeouts) Set(
	ctx context.Context, databaseID id.DatabaseID, b wire.SetQueryTimeouts, opts ...Option,
) (wire.QueryTimeouts, error) {
	return data[wire.QueryTimeouts](ctx, x.c, post(b, "/databases/%s/query-timeouts", databaseID).withKey(), opts)
}

// SlowQueries groups calls: what takes the time of a database.
type SlowQueries struct{ c *Client }

// Get sends GET /databases/{id}/slow-queries: get what takes most time in a database, what takes longest, or what runs most
// often.
func (x SlowQueries) Get(ctx context.Context, databaseID id.DatabaseID, order string, opts ...Option) (wire.SlowQueries, error) {
	return data[wire.SlowQueries](ctx, x.c, get("/databases/%s/slow-queries", databaseID).with("order", order), opts)
}

// Backups groups calls: backup files of a database.
type Backups struct{ c *Client }

// List sends GET /databases/{id}/backups: list the backups of a database, newest first.
func (x Backups) List(databaseID id.DatabaseID) Pages[wire.Backup] {
	return Pages[wire.Backup]{x.c, get("/databases/%s/backups", databaseID)}
}

// Start sends POST /databases/{id}/backups: start a backup.
func (x Backups) Start(ctx context.Context, databaseID id.DatabaseID, opts ...Option) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, x.c, post(nil, "/databases/%s/backups", databaseID), opts)
}

// Download sends GET /databases/{id}/backups/{filename}: download a backup. 200: the file; its ETag is its SHA-256. 206: the file
// from the byte on that Range names.
func (x Backups) Download(
	ctx context.Context, databaseID id.DatabaseID, filename backup.Filename, opts ...Option,
) (*Download, error) {
	return x.c.download(ctx, get("/databases/%s/backups/%s", databaseID, filename), opts)
}

// SetPolicy sends PATCH /databases/{id}/backup-policy: choose whether the service makes daily backups of a database.
func (x Backups) SetPolicy(
	ctx context.Context, databaseID id.DatabaseID, b wire.SetBackupPolicy, opts ...Option,
) (wire.BackupPolicy, error) {
	return data[wire.BackupPolicy](ctx, x.c, patch(b, "/databases/%s/backup-policy", databaseID), opts)
}

// Delete sends DELETE /databases/{id}/backups/{filename}: delete a backup permanently.
func (x Backups) Delete(ctx context.Context, databaseID id.DatabaseID, filename backup.Filename, opts ...Option) error {
	return tell(ctx, x.c, remove("/databases/%s/backups/%s", databaseID, filename).ofGone(fault.BackupNotFound), opts)
}

// Recovery groups calls: as of which moments a database can be had back, and what it held then.
type Recovery struct{ c *Client }

// GetCertificate sends GET /databases/{id}/recovery-certificate: get the signed proof that a moment of a database was had back.
func (x Recovery) GetCertificate(ctx context.Context, databaseID id.DatabaseID, opts ...Option) (wire.Certificate, error) {
	return ask[wire.Certificate](ctx, x.c, get("/databases/%s/recovery-certificate", databaseID), opts)
}

// GetWindow sends GET /databases/{id}/recovery-window: get as of which moments a database can be had back, also a deleted one.
func (x Recovery) GetWindow(ctx context.Context, databaseID id.DatabaseID, opts ...Option) (wire.RecoveryWindow, error) {
	return ask[wire.RecoveryWindow](ctx, x.c, get("/databases/%s/recovery-window", databaseID), opts)
}

// RescueTables sends POST /databases/{id}/rescue: put tables as they were at a moment into a schema of the database as it is.
func (x Recovery) RescueTables(
	ctx context.Context, databaseID id.DatabaseID, b wire.RescueTables, opts ...Option,
) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, x.c, post(b, "/databases/%s/rescue", databaseID).withKey(), opts)
}

// CompareMoments sends POST /databases/{id}/comparisons: compare the tables, columns and numbers of rows of a database at two
// moments.
func (x Recovery) CompareMoments(
	ctx context.Context, databaseID id.DatabaseID, b wire.CompareMoments, opts ...Option,
) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, x.c, post(b, "/databases/%s/comparisons", databaseID).withKey(), opts)
}

// FindMoment sends POST /databases/{id}/searches: find the second from which on the answer of a query fulfils a comparison.
func (x Recovery) FindMoment(
	ctx context.Context, databaseID id.DatabaseID, b wire.FindMoment, opts ...Option,
) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, x.c, post(b, "/databases/%s/searches", databaseID).withKey(), opts)
}

// Certificates groups calls: signed proofs that backups can be restored.
type Certificates struct{ c *Client }

// Get sends GET /databases/{id}/backups/{filename}/certificate: get the signed proof that a backup was restored and found equal.
func (x Certificates) Get(
	ctx context.Context, databaseID id.DatabaseID, filename backup.Filename, opts ...Option,
) (wire.Certificate, error) {
	return ask[wire.Certificate](ctx, x.c, get("/databases/%s/backups/%s/certificate", databaseID, filename), opts)
}

// ListKeys sends GET /certificate-keys: list every key that ever signed certificates, newest first; needs no API key.
func (x Certificates) ListKeys() Pages[wire.CertificateKey] {
	return Pages[wire.CertificateKey]{x.c, get("/certificate-keys")}
}

// Restores groups calls: bringing a database back to one of its backups, or to a dump of your own.
type Restores struct{ c *Client }

// Reserve sends POST /databases/{id}/managed-restores: reserve a restore of a database with managed logins, which changes nothing
// yet. 200: the request was made before, and its restore has succeeded. 202: the restore is reserved, or goes on.
func (x Restores) Reserve(
	ctx context.Context, databaseID id.DatabaseID, b wire.ReserveRestore, opts ...Option,
) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, x.c, post(b, "/databases/%s/managed-restores", databaseID).withKey(), opts)
}

// Advance sends POST /operations/{operationId}/managed-restore/advance: do the next step of a managed restore; repeat the call
// until it answers 200. 200: the database is restored. 202: the restore is unfinished.
func (x Restores) Advance(ctx context.Context, operationID id.OperationID, opts ...Option) (wire.Operation, error) {
	return ask[wire.Operation](ctx, x.c, post(nil, "/operations/%s/managed-restore/advance", operationID).mayRepeat(), opts)
}

// Restore sends POST /databases/{id}/backups/{filename}: restore a database that has a single login from one of its backups.
func (x Restores) Restore(
	ctx context.Context, databaseID id.DatabaseID, filename backup.Filename, b wire.RestoreBackup, opts ...Option,
) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, x.c, post(b, "/databases/%s/backups/%s", databaseID, filename), opts)
}

// AnnounceUpload sends POST /databases/{id}/backups/restore-upload/init: announce a dump of your own, to restore a database with
// a single login from.
func (x Restores) AnnounceUpload(
	ctx context.Context, databaseID id.DatabaseID, b wire.AnnounceUpload, opts ...Option,
) (wire.Upload, error) {
	return data[wire.Upload](ctx, x.c, post(b, "/databases/%s/backups/restore-upload/init", databaseID), opts)
}

// CompleteUpload sends POST /databases/{id}/backups/restore-upload/complete: restore a database from a dump that was sent.
func (x Restores) CompleteUpload(
	ctx context.Context, databaseID id.DatabaseID, b wire.CompleteUpload, opts ...Option,
) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, x.c, post(b, "/databases/%s/backups/restore-upload/complete", databaseID), opts)
}

// Previews groups calls: short-lived databases for CI, for synthetic test data only; they need a preview CI key.
type Previews struct{ c *Client }

// Create sends POST /previews: make the preview database of a ref, for synthetic test data only, or get the one that it has. 201:
// it was made. 200: the ref had it. 202: it is being made with the data of a database.
func (x Previews) Create(ctx context.Context, b wire.CreatePreview, opts ...Option) (wire.CreatedPreview, error) {
	return ask[wire.CreatedPreview](ctx, x.c, post(b, "/previews").mayRepeat(), opts)
}

// Find sends GET /previews: find the preview database that a ref has; a deleted one is not found.
func (x Previews) Find(ctx context.Context, ref string, opts ...Option) (wire.Preview, error) {
	return data[wire.Preview](ctx, x.c, get("/previews").with("ref", ref), opts)
}

// Get sends GET /previews/{databaseId}: get a preview database, also a deleted one.
func (x Previews) Get(ctx context.Context, databaseID id.DatabaseID, opts ...Option) (wire.Preview, error) {
	return data[wire.Preview](ctx, x.c, get("/previews/%s", databaseID), opts)
}

// Extend sends POST /previews/{databaseId}/extend: renew the lease of a preview database.
func (x Previews) Extend(
	ctx context.Context, databaseID id.DatabaseID, b wire.ExtendPreview, opts ...Option,
) (wire.Preview, error) {
	return data[wire.Preview](ctx, x.c, post(b, "/previews/%s/extend", databaseID), opts)
}

// SetBackupPolicy sends PATCH /previews/{databaseId}/backup-policy: choose whether the service makes daily backups of a preview
// database.
func (x Previews) SetBackupPolicy(
	ctx context.Context, databaseID id.DatabaseID, b wire.SetBackupPolicy, opts ...Option,
) (wire.Preview, error) {
	return data[wire.Preview](ctx, x.c, patch(b, "/previews/%s/backup-policy", databaseID), opts)
}

// Delete sends DELETE /previews/{databaseId}: delete a preview database; its deletion backup is made first.
func (x Previews) Delete(ctx context.Context, databaseID id.DatabaseID, opts ...Option) (wire.Preview, error) {
	return data[wire.Preview](ctx, x.c, remove("/previews/%s", databaseID), opts)
}

// Extensions groups calls: postgreSQL extensions of a database.
type Extensions struct{ c *Client }

// List sends GET /databases/{id}/extensions: list the PostgreSQL extensions of a database.
func (x Extensions) List(ctx context.Context, databaseID id.DatabaseID, opts ...Option) ([]wire.Extension, error) {
	return data[[]wire.Extension](ctx, x.c, get("/databases/%s/extensions", databaseID), opts)
}

// Change sends POST /databases/{id}/extensions/operations: install or upgrade a PostgreSQL extension. 200: the operation has
// ended: the request was made before. 202: the operation is queued or running.
func (x Extensions) Change(
	ctx context.Context, databaseID id.DatabaseID, b wire.ChangeExtension, opts ...Option,
) (wire.ExtensionOperation, error) {
	return ask[wire.ExtensionOperation](ctx, x.c, post(b, "/databases/%s/extensions/operations", databaseID).withKey(), opts)
}

// GetOperation sends GET /databases/{id}/extensions/operations/{operationId}: get an operation on an extension, and check its
// progress.
func (x Extensions) GetOperation(
	ctx context.Context, databaseID id.DatabaseID, operationID id.OperationID, opts ...Option,
) (wire.ExtensionOperation, error) {
	return ask[wire.ExtensionOperation](ctx, x.c, get("/databases/%s/extensions/operations/%s", databaseID, operationID), opts)
}

// CITokens groups calls: keys for pipelines that store none.
type CITokens struct{ c *Client }

// Exchange sends POST /previews/token: exchange an OIDC token of a CI system for a preview CI key of one hour; needs no API key.
func (x CITokens) Exchange(ctx context.Context, b wire.ExchangeToken, opts ...Option) (wire.ExchangedKey, error) {
	return data[wire.ExchangedKey](ctx, x.c, post(b, "/previews/token"), opts)
}

// CINamespaces groups calls: namespaces of pipelines, and whose tokens they trust.
type CINamespaces struct{ c *Client }

// List sends GET /ci-namespaces: list the CI namespaces of the account, including revoked ones.
func (x CINamespaces) List(ctx context.Context, opts ...Option) ([]wire.Namespace, error) {
	return data[[]wire.Namespace](ctx, x.c, get("/ci-namespaces"), opts)
}

// ListTrusts sends GET /ci-namespaces/{namespaceId}/trusts: list whose OIDC tokens a CI namespace trusts.
func (x CINamespaces) ListTrusts(ctx context.Context, namespaceID id.NamespaceID, opts ...Option) ([]wire.Trust, error) {
	return data[[]wire.Trust](ctx, x.c, get("/ci-namespaces/%s/trusts", namespaceID), opts)
}

// AddTrust sends POST /ci-namespaces/{namespaceId}/trusts: have a CI namespace trust OIDC tokens: they can be exchanged for its
// keys from now on.
func (x CINamespaces) AddTrust(
	ctx context.Context, namespaceID id.NamespaceID, b wire.AddTrust, opts ...Option,
) (wire.Trust, error) {
	return data[wire.Trust](ctx, x.c, post(b, "/ci-namespaces/%s/trusts", namespaceID), opts)
}

// RemoveTrust sends DELETE /ci-namespaces/{namespaceId}/trusts/{trustId}: remove a trust of a CI namespace, and end the keys that
// were made by it.
func (x CINamespaces) RemoveTrust(ctx context.Context, namespaceID id.NamespaceID, trustID id.TrustID, opts ...Option) error {
	return tell(ctx, x.c, remove("/ci-namespaces/%s/trusts/%s", namespaceID, trustID).ofGone(fault.TrustNotFound), opts)
}

// Operations groups calls: asynchronous work and its progress.
type Operations struct{ c *Client }

// List sends GET /databases/{id}/operations: list the operations of a database, newest first.
func (x Operations) List(databaseID id.DatabaseID) Pages[wire.Operation] {
	return Pages[wire.Operation]{x.c, get("/databases/%s/operations", databaseID)}
}

// Get sends GET /operations/{id}: get an operation.
func (x Operations) Get(ctx context.Context, operationID id.OperationID, opts ...Option) (wire.Operation, error) {
	return ask[wire.Operation](ctx, x.c, get("/operations/%s", operationID), opts)
}

// Cancel sends POST /operations/{id}/cancel: cancel an operation. 200: the operation is canceled. 202: the operation is running,
// and will be canceled.
func (x Operations) Cancel(ctx context.Context, operationID id.OperationID, opts ...Option) (wire.OperationWithMessage, error) {
	return ask[wire.OperationWithMessage](ctx, x.c, post(nil, "/operations/%s/cancel", operationID), opts)
}

// Usage groups calls: what a database uses of its server, and what is billed by.
type Usage struct{ c *Client }

// Get sends GET /databases/{id}/usage: get what a database used, for 31 days at most by hours, and else for 400.
func (x Usage) Get(
	ctx context.Context, databaseID id.DatabaseID, from string, to string, resolution string, opts ...Option,
) (wire.Usage, error) {
	request := get("/databases/%s/usage", databaseID).with("from", from).with("to", to).with("resolution", resolution)
	return data[wire.Usage](ctx, x.c, request, opts)
}

// List sends GET /usage: list what the databases of the account came to in a month, also those that are gone.
func (x Usage) List(month string, resolution string) Pages[wire.DatabaseUsage] {
	return Pages[wire.DatabaseUsage]{x.c, get("/usage").with("month", month).with("resolution", resolution)}
}

// Activity groups calls: what was done to a database, and by whom.
type Activity struct{ c *Client }

// List sends GET /databases/{id}/activity: list the activity log of a database, newest first.
func (x Activity) List(databaseID id.DatabaseID) Pages[wire.Activity] {
	return Pages[wire.Activity]{x.c, get("/databases/%s/activity", databaseID)}
}

// Members groups calls: people who may use a database beside its owner, and invitations.
type Members struct{ c *Client }

// List sends GET /databases/{id}/members: list the owner, the members and the invitations of a database.
func (x Members) List(ctx context.Context, databaseID id.DatabaseID, opts ...Option) (wire.Members, error) {
	return data[wire.Members](ctx, x.c, get("/databases/%s/members", databaseID), opts)
}

// Add sends POST /databases/{id}/members: make a user a member, set the role of a member, or invite somebody by mail.
func (x Members) Add(ctx context.Context, databaseID id.DatabaseID, b wire.AddMember, opts ...Option) (wire.AddedMember, error) {
	return data[wire.AddedMember](ctx, x.c, post(b, "/databases/%s/members", databaseID), opts)
}

// SetRole sends PATCH /databases/{id}/members/{membershipId}: change the role of a member; passwords of the database's logins
// stay as they are.
func (x Members) SetRole(
	ctx context.Context, databaseID id.DatabaseID, membershipID id.MembershipID, b wire.SetMemberRole, opts ...Option,
) (wire.Member, error) {
	return data[wire.Member](ctx, x.c, patch(b, "/databases/%s/members/%s", databaseID, membershipID), opts)
}

// Remove sends DELETE /databases/{id}/members/{membershipId}: remove a member, whose API keys lose the database; passwords of its
// logins stay as they are.
func (x Members) Remove(ctx context.Context, databaseID id.DatabaseID, membershipID id.MembershipID, opts ...Option) error {
	return tell(ctx, x.c, remove("/databases/%s/members/%s", databaseID, membershipID).ofGone(fault.MemberNotFound), opts)
}

// ListInvitations sends GET /databases/{id}/invitations: list the invitations to a database that are open or expired.
func (x Members) ListInvitations(ctx context.Context, databaseID id.DatabaseID, opts ...Option) ([]wire.Invitation, error) {
	return data[[]wire.Invitation](ctx, x.c, get("/databases/%s/invitations", databaseID), opts)
}

// ResendInvitation sends POST /databases/{id}/invitations/{invitationId}/resend: mail an invitation again, with a new token and
// seven new days.
func (x Members) ResendInvitation(
	ctx context.Context, databaseID id.DatabaseID, invitationID id.InvitationID, opts ...Option,
) (wire.Invitation, error) {
	return data[wire.Invitation](ctx, x.c, post(nil, "/databases/%s/invitations/%s/resend", databaseID, invitationID), opts)
}

// DeleteInvitation sends DELETE /databases/{id}/invitations/{invitationId}: delete an invitation, whose token is then worth
// nothing.
func (x Members) DeleteInvitation(
	ctx context.Context, databaseID id.DatabaseID, invitationID id.InvitationID, opts ...Option,
) error {
	return tell(ctx, x.c, remove("/databases/%s/invitations/%s", databaseID, invitationID).ofGone(fault.InvitationNotFound), opts)
}

// AcceptInvitation sends POST /invitations/accept: become a member with the token of an invitation; needs no API key.
func (x Members) AcceptInvitation(ctx context.Context, b wire.AcceptInvitation, opts ...Option) (wire.AcceptedInvitation, error) {
	return data[wire.AcceptedInvitation](ctx, x.c, post(b, "/invitations/accept"), opts)
}

// Webhooks groups calls: endpoints that are sent signed events.
type Webhooks struct{ c *Client }

// List sends GET /webhooks: list the webhook endpoints of the account, including disabled ones.
func (x Webhooks) List() Pages[wire.Webhook] {
	return Pages[wire.Webhook]{x.c, get("/webhooks")}
}

// Create sends POST /webhooks: create a webhook endpoint.
func (x Webhooks) Create(ctx context.Context, b wire.CreateWebhook, opts ...Option) (wire.WebhookSecret, error) {
	return data[wire.WebhookSecret](ctx, x.c, post(b, "/webhooks"), opts)
}

// RotateSecret sends POST /webhooks/{id}/rotate: replace the signing secret of an endpoint, and enable the endpoint.
func (x Webhooks) RotateSecret(ctx context.Context, webhookID id.WebhookID, opts ...Option) (wire.WebhookSecret, error) {
	return data[wire.WebhookSecret](ctx, x.c, post(nil, "/webhooks/%s/rotate", webhookID), opts)
}

// Disable sends DELETE /webhooks/{id}: disable a webhook endpoint.
func (x Webhooks) Disable(ctx context.Context, webhookID id.WebhookID, opts ...Option) error {
	return tell(ctx, x.c, remove("/webhooks/%s", webhookID), opts)
}

// Test sends POST /webhooks/{id}/test: send a test event to an endpoint.
func (x Webhooks) Test(ctx context.Context, webhookID id.WebhookID, opts ...Option) (wire.Delivery, error) {
	return data[wire.Delivery](ctx, x.c, post(nil, "/webhooks/%s/test", webhookID), opts)
}

// ListDeliveryAttempts sends GET /webhooks/{id}/deliveries: list the delivery attempts of an endpoint, newest first.
func (x Webhooks) ListDeliveryAttempts(webhookID id.WebhookID) Pages[wire.DeliveryAttempt] {
	return Pages[wire.DeliveryAttempt]{x.c, get("/webhooks/%s/deliveries", webhookID)}
}

// RedeliverEvent sends POST /webhooks/{id}/deliveries/{deliveryId}/redeliver: deliver an event again.
func (x Webhooks) RedeliverEvent(
	ctx context.Context, webhookID id.WebhookID, deliveryID id.DeliveryID, opts ...Option,
) (wire.Delivery, error) {
	return data[wire.Delivery](ctx, x.c, post(nil, "/webhooks/%s/deliveries/%s/redeliver", webhookID, deliveryID), opts)
}

// Roles groups calls: further logins of a database, each with its own password.
type Roles struct{ c *Client }

// List sends GET /databases/{id}/custom-roles: list the additional roles of a database.
func (x Roles) List(
	ctx context.Context, databaseID id.DatabaseID, includeRevoked bool, opts ...Option,
) ([]wire.ListedRole, error) {
	request := get("/databases/%s/custom-roles", databaseID).with("includeRevoked", includeRevoked)
	return roles[wire.ListedRole](ctx, x.c, request, opts)
}

// Reveal sends POST /databases/{id}/custom-roles/{roleId}/credentials: reveal the password of a role.
func (x Roles) Reveal(
	ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, opts ...Option,
) (wire.RevealedRole, error) {
	request := post(nil, "/databases/%s/custom-roles/%s/credentials", databaseID, roleID).mayRepeat()
	return ask[wire.RevealedRole](ctx, x.c, request, opts)
}

// Change sends POST /databases/{id}/custom-roles/{roleId}/changes: rotate the password of a role, or revoke the role. 200: the
// change is completed. 202: the change is pending, and continues in the background.
func (x Roles) Change(
	ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, b wire.ChangeRole, opts ...Option,
) (wire.RoleChange, error) {
	return ask[wire.RoleChange](ctx, x.c, post(b, "/databases/%s/custom-roles/%s/changes", databaseID, roleID).withKey(), opts)
}

// GetChange sends GET /databases/{id}/custom-roles/{roleId}/changes/{operationId}: get a change of a role.
func (x Roles) GetChange(
	ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, operationID id.OperationID, opts ...Option,
) (wire.RoleChange, error) {
	return ask[wire.RoleChange](ctx, x.c, get("/databases/%s/custom-roles/%s/changes/%s", databaseID, roleID, operationID), opts)
}

// ContinueChange sends POST /databases/{id}/custom-roles/{roleId}/changes/{operationId}: continue a pending change of a role.
// 200: the change is completed. 202: the change is pending, and continues in the background.
func (x Roles) ContinueChange(
	ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, operationID id.OperationID, b wire.Disconnect, opts ...Option,
) (wire.RoleChange, error) {
	request := post(b, "/databases/%s/custom-roles/%s/changes/%s", databaseID, roleID, operationID).mayRepeat()
	return ask[wire.RoleChange](ctx, x.c, request, opts)
}

// Admit sends POST /databases/{id}/custom-roles/{roleId}/admit: allow a prepared role to log in.
func (x Roles) Admit(ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, opts ...Option) (wire.RoleSetup, error) {
	return ask[wire.RoleSetup](ctx, x.c, post(nil, "/databases/%s/custom-roles/%s/admit", databaseID, roleID).mayRepeat(), opts)
}

// Create sends POST /databases/{id}/custom-roles: create an additional role, or continue its creation.
func (x Roles) Create(ctx context.Context, databaseID id.DatabaseID, b wire.CreateRole, opts ...Option) (wire.Role, error) {
	return ask[wire.Role](ctx, x.c, post(b, "/databases/%s/custom-roles", databaseID).withKey(), opts)
}

// Remove sends DELETE /databases/{id}/custom-roles/{roleId}: remove a revoked role. 200: the role is removed. 202: the removal is
// not finished: repeat the request.
func (x Roles) Remove(ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, opts ...Option) (wire.RoleRemoval, error) {
	return removal(ctx, x.c, roleID, remove("/databases/%s/custom-roles/%s", databaseID, roleID).ofGone(fault.RoleNotFound), opts)
}

// Prepare sends POST /databases/{id}/custom-roles/{roleId}/prepare: create a reserved role on the server.
func (x Roles) Prepare(ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, opts ...Option) (wire.RoleSetup, error) {
	return ask[wire.RoleSetup](ctx, x.c, post(nil, "/databases/%s/custom-roles/%s/prepare", databaseID, roleID).mayRepeat(), opts)
}

// Rename sends PATCH /databases/{id}/custom-roles/{roleId}: change the display name of a role.
func (x Roles) Rename(
	ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, b wire.RenameRole, opts ...Option,
) (wire.RoleLabel, error) {
	return ask[wire.RoleLabel](ctx, x.c, patch(b, "/databases/%s/custom-roles/%s", databaseID, roleID), opts)
}

// Delete sends POST /databases/{id}/custom-roles/{roleId}/delete: revoke a role and remove it. 200: the role is removed. 202: the
// removal is not finished: repeat the request.
func (x Roles) Delete(
	ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, b wire.DeleteRole, opts ...Option,
) (wire.RoleRemoval, error) {
	request := post(b, "/databases/%s/custom-roles/%s/delete", databaseID, roleID).mayRepeat().ofGone(fault.RoleNotFound)
	return removal(ctx, x.c, roleID, request, opts)
}

// LegacyRoles groups calls: further logins of a database with a single login, which an operator has activated.
type LegacyRoles struct{ c *Client }

// List sends GET /databases/{id}/legacy-roles: list the additional roles of a database.
func (x LegacyRoles) List(
	ctx context.Context, databaseID id.DatabaseID, includeRevoked bool, opts ...Option,
) ([]wire.ListedRole, error) {
	request := get("/databases/%s/legacy-roles", databaseID).with("includeRevoked", includeRevoked)
	return roles[wire.ListedRole](ctx, x.c, request, opts)
}

// Reveal sends POST /databases/{id}/legacy-roles/{roleId}/credentials: reveal the password of a role.
func (x LegacyRoles) Reveal(
	ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, opts ...Option,
) (wire.RevealedRole, error) {
	request := post(nil, "/databases/%s/legacy-roles/%s/credentials", databaseID, roleID).mayRepeat()
	return ask[wire.RevealedRole](ctx, x.c, request, opts)
}

// Change sends POST /databases/{id}/legacy-roles/{roleId}/changes: rotate the password of a role, or revoke the role. 200: the
// change is completed. 202: the change is pending, and continues in the background.
func (x LegacyRoles) Change(
	ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, b wire.ChangeRole, opts ...Option,
) (wire.RoleChange, error) {
	return ask[wire.RoleChange](ctx, x.c, post(b, "/databases/%s/legacy-roles/%s/changes", databaseID, roleID).withKey(), opts)
}

// GetChange sends GET /databases/{id}/legacy-roles/{roleId}/changes/{operationId}: get a change of a role.
func (x LegacyRoles) GetChange(
	ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, operationID id.OperationID, opts ...Option,
) (wire.RoleChange, error) {
	return ask[wire.RoleChange](ctx, x.c, get("/databases/%s/legacy-roles/%s/changes/%s", databaseID, roleID, operationID), opts)
}

// ContinueChange sends POST /databases/{id}/legacy-roles/{roleId}/changes/{operationId}: continue a pending change of a role.
// 200: the change is completed. 202: the change is pending, and continues in the background.
func (x LegacyRoles) ContinueChange(
	ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, operationID id.OperationID, b wire.Disconnect, opts ...Option,
) (wire.RoleChange, error) {
	request := post(b, "/databases/%s/legacy-roles/%s/changes/%s", databaseID, roleID, operationID).mayRepeat()
	return ask[wire.RoleChange](ctx, x.c, request, opts)
}

// Admit sends POST /databases/{id}/legacy-roles/{roleId}/admit: allow a prepared role to log in.
func (x LegacyRoles) Admit(
	ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, opts ...Option,
) (wire.RoleSetup, error) {
	return ask[wire.RoleSetup](ctx, x.c, post(nil, "/databases/%s/legacy-roles/%s/admit", databaseID, roleID).mayRepeat(), opts)
}

// Create sends POST /databases/{id}/legacy-roles: reserve an additional role.
func (x LegacyRoles) Create(ctx context.Context, databaseID id.DatabaseID, b wire.CreateRole, opts ...Option) (wire.Role, error) {
	return ask[wire.Role](ctx, x.c, post(b, "/databases/%s/legacy-roles", databaseID).withKey(), opts)
}

// Remove sends DELETE /databases/{id}/legacy-roles/{roleId}: remove a role; a ready one is revoked first. 200: the role is
// removed. 202: the removal is not finished: repeat the request.
func (x LegacyRoles) Remove(
	ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, opts ...Option,
) (wire.RoleRemoval, error) {
	return removal(ctx, x.c, roleID, remove("/databases/%s/legacy-roles/%s", databaseID, roleID).ofGone(fault.RoleNotFound), opts)
}

// Prepare sends POST /databases/{id}/legacy-roles/{roleId}/prepare: create a reserved role on the server.
func (x LegacyRoles) Prepare(
	ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, opts ...Option,
) (wire.ConnectGrant, error) {
	return ask[wire.ConnectGrant](ctx, x.c, post(nil, "/databases/%s/legacy-roles/%s/prepare", databaseID, roleID).mayRepeat(), opts)
}

// OptIn sends POST /databases/{id}/legacy-roles/opt-in: opt in for additional roles, or go on with the opt-in. 200: the overlay
// is active. 202: the overlay is reserved: repeat the request.
func (x LegacyRoles) OptIn(ctx context.Context, databaseID id.DatabaseID, opts ...Option) (wire.Overlay, error) {
	return ask[wire.Overlay](ctx, x.c, post(nil, "/databases/%s/legacy-roles/opt-in", databaseID).mayRepeat(), opts)
}

// Reconcile sends POST /databases/{id}/legacy-roles/{roleId}/reconcile: find out what has become of the last step of a role.
func (x LegacyRoles) Reconcile(
	ctx context.Context, databaseID id.DatabaseID, roleID id.RoleID, opts ...Option,
) (wire.ListedRole, error) {
	return ask[wire.ListedRole](ctx, x.c, post(nil, "/databases/%s/legacy-roles/%s/reconcile", databaseID, roleID).mayRepeat(), opts)
}

// Logins groups calls: the logins that were created with a database.
type Logins struct{ c *Client }

// List sends GET /databases/{id}/managed-roles: list the logins that were created with a database.
func (x Logins) List(ctx context.Context, databaseID id.DatabaseID, opts ...Option) ([]wire.Login, error) {
	return roles[wire.Login](ctx, x.c, get("/databases/%s/managed-roles", databaseID), opts)
}

// Reveal sends POST /databases/{id}/managed-roles/{login}/credentials: reveal the password of the runtime or readonly login.
func (x Logins) Reveal(
	ctx context.Context, databaseID id.DatabaseID, login database.Login, opts ...Option,
) (wire.RevealedLogin, error) {
	request := post(nil, "/databases/%s/managed-roles/%s/credentials", databaseID, login).mayRepeat()
	return ask[wire.RevealedLogin](ctx, x.c, request, opts)
}

// Rotate sends POST /databases/{id}/managed-roles/{login}/rotate: rotate the password of a login; the owner's new password is
// returned once. 200: the rotation is completed. 202: the rotation is pending, and continues in the background.
func (x Logins) Rotate(
	ctx context.Context, databaseID id.DatabaseID, login database.Login, b wire.Disconnect, opts ...Option,
) (wire.LoginRotation, error) {
	return ask[wire.LoginRotation](ctx, x.c, post(b, "/databases/%s/managed-roles/%s/rotate", databaseID, login).withKey(), opts)
}
