package memstore

import (
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/keyring"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/core/usage"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// state is everything that is stored. Copying the struct is a snapshot.
type state struct {
	txid             txid // of the transaction that made it
	users            rows[id.UserID, account.User]
	operators        rows[id.UserID, time.Time] // since when
	sessions         rows[id.SessionID, person.Session]
	factors          rows[id.UserID, person.Factor]
	passkeys         rows[id.PasskeyID, person.Passkey]
	spentChallenges  rows[token.Hash, time.Time] // until when they are remembered
	identities       rows[identityKey, person.Identity]
	resets           rows[id.UserID, person.Reset]
	recoveryCodes    rows[recoveryCode, recoveryCode]
	accounts         rows[id.AccountID, account.Account]
	namespaces       rows[id.NamespaceID, account.Namespace]
	keys             rows[id.KeyID, account.Key]
	trusts           rows[id.TrustID, citoken.Trust]
	spentTokens      rows[string, time.Time] // until when they are remembered
	bindings         rows[binding, binding]
	servers          rows[id.ServerID, server.Server]
	databases        rows[id.DatabaseID, database.Record]
	memberships      rows[membershipKey, member.Membership]
	invitations      rows[id.InvitationID, member.Invitation]
	backupKeys       rows[id.DatabaseID, backup.Key]
	logins           rows[loginKey, ports.LoginSecret]
	roles            rows[id.RoleID, role.Role]
	roleChanges      rows[id.OperationID, role.Change]
	allowlist        rows[id.AllowlistEntryID, database.AllowlistEntry]
	operations       rows[id.OperationID, operation.Operation]
	operationLanes   rows[operationLane, int64] // the turn at which each was last served
	uses             rows[useKey, operation.Use]
	backups          rows[backupKey, backup.Backup]
	requests         rows[requestKey, idempotency.Record]
	audit            rows[id.AuditID, audit.Entry]
	events           rows[id.EventID, ports.OutboxEvent]
	taken            rows[id.EventID, id.EventID] // events of which deliveries were made
	webhooks         rows[id.WebhookID, webhook.Endpoint]
	webhookLanes     rows[id.WebhookID, int64] // the turn at which each was last served
	deliveries       rows[id.DeliveryID, webhook.Delivery]
	attempts         rows[attemptKey, ports.WebhookAttempt]
	mails            rows[id.MailID, mail.Mail]
	mailLanes        rows[id.AccountID, int64] // the same
	turns            int64                     // claims so far
	features         rows[string, string]
	enrolments       rows[enrolment, enrolment]
	autoEnroll       rows[id.AccountID, id.AccountID]
	maintenance      bool
	qualifications   rows[qualificationKey, extension.Qualification]
	signingKeys      rows[id.CertificateKeyID, certificate.Key]
	ringKeys         rows[keyring.Fingerprint, keyring.Key]
	ringHosts        rows[id.RingHostID, keyring.Host]
	uploads          rows[id.UploadID, upload.Upload]
	tombstones       rows[id.DatabaseID, deletion.Tombstone]
	tombstoneMembers rows[membershipKey, membershipKey]
	tombstoneKeys    rows[binding, binding]
	previews         rows[id.DatabaseID, preview.Preview]
	usageSamples     rows[usageKey, usage.Sample]
	usageLines       rows[usageKey, usage.Line]
	usageTaken       rows[id.ServerID, usage.Taken]
	drills           rows[id.DrillID, drill.Drill]
	forwards         rows[forwardKey, move.Forward]
	rehearsals       rows[rehearsalKey, rehearsal.Rehearsal]
	drains           rows[id.ServerID, move.Drain]
	drainItems       rows[drainItemKey, move.DrainItem]
	drillPlans       rows[id.ServerID, drill.Plan]
}

type identityKey struct{ issuer, subject string }

type binding struct {
	key      id.KeyID
	database id.DatabaseID
}

type membershipKey struct {
	database id.DatabaseID
	user     id.UserID
}

type loginKey struct {
	database id.DatabaseID
	login    database.Login
}

type backupKey struct {
	database id.DatabaseID
	filename backup.Filename
}

type requestKey struct {
	account id.AccountID
	route   string
	key     idempotency.Key
}

type enrolment struct {
	database id.DatabaseID
	route    string
}

type attemptKey struct {
	delivery id.DeliveryID
	number   int
}

// begin returns a copy for the next transaction, which copies each table when it first writes to it.
func (s state) begin() *state {
	s.txid++
	return &s
}
