// Package audit holds the activity log: who did what to a database, an account or the installation, and when. An entry never
// carries a secret.
package audit

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Action names what happened; past tense, resource first.
type Action string

// What is logged.
const (
	DatabaseCreated     Action = "database.created"
	DatabaseCreateFail  Action = "database.create_failed"
	PasswordShownAgain  Action = "database.password_shown_again" // by a repeated request for its creation
	EnvironmentChanged  Action = "database.environment_changed"
	DatabaseStarted     Action = "database.started"
	DatabaseStopped     Action = "database.stopped"
	DatabaseRestarted   Action = "database.restarted"
	AccessLost          Action = "database.access_lost"
	AccessRestored      Action = "database.access_restored"
	DeleteRequested     Action = "database.delete_requested"
	DatabaseDeleted     Action = "database.deleted"
	DeleteFailed        Action = "database.delete_failed"
	RecoverRequested    Action = "database.recover_requested"
	DatabaseRecovered   Action = "database.recovered"
	RecoverFailed       Action = "database.recover_failed"
	PurgeBegun          Action = "database.purge_begun"
	DatabasePurged      Action = "database.purged"
	AdoptRequested      Action = "database.adopt_requested" // a record for what a server has and the metadata do not know
	DatabaseAdopted     Action = "database.adopted"
	AdoptFailed         Action = "database.adopt_failed"
	StorageFull         Action = "storage.full"   // read-only by default
	StorageClosed       Action = "storage.closed" // connections are refused
	StorageWithin       Action = "storage.ok"
	AllowlistAdded      Action = "allowlist.added"
	AllowlistRemoved    Action = "allowlist.removed"
	BackupRequested     Action = "backup.requested"
	BackupFinished      Action = "backup.finished"
	BackupDeleted       Action = "backup.deleted"
	BackupExpired       Action = "backup.expired"
	BackupDownloaded    Action = "backup.downloaded"
	BackupDamaged       Action = "backup.damaged"     // what is stored of it is not what was, as reading it again has found
	BackupAdopted       Action = "backup.adopted"     // a record for a file that had none
	BackupForgotten     Action = "backup.forgotten"   // its record, of which the server has no file
	BackupMended        Action = "backup.whole_again" // it was taken to be damaged, and is not
	RestoreRequested    Action = "restore.requested"
	RestoreFinished     Action = "restore.finished"
	RebuildRequested    Action = "rebuild.requested"
	RebuildFinished     Action = "rebuild.finished"
	MoveRequested       Action = "move.requested"
	MoveFinished        Action = "move.finished"
	RehearsalRequested  Action = "rehearsal.requested"
	RehearsalFinished   Action = "rehearsal.finished"
	ForwardEnded        Action = "database.forward_ended" // by an operator: nobody who comes to a former server is sent on
	DatabaseMoved       Action = "database.moved"         // to another server, which is where it is from then on
	UpgradeConfirmed    Action = "database.upgrade_confirmed"
	CloneRequested      Action = "clone.requested"
	CloneFinished       Action = "clone.finished"
	RescueRequested     Action = "rescue.requested"
	RescueFinished      Action = "rescue.finished"
	ComparisonRequested Action = "comparison.requested"
	ComparisonFinished  Action = "comparison.finished"
	SearchRequested     Action = "search.requested"
	SearchFinished      Action = "search.finished"
	WebhookCreated      Action = "webhook.created"
	WebhookRotated      Action = "webhook.rotated"
	WebhookDisabled     Action = "webhook.disabled"
	RoleCreated         Action = "role.created"
	RoleRenamed         Action = "role.renamed"
	RoleAdopted         Action = "role.adopted"      // a record for what a server has and the metadata do not know
	RoleDropOrdered     Action = "role.drop_ordered" // of one that only the server has, or only the metadata
	RoleRevealed        Action = "role.revealed"
	RoleRotated         Action = "role.rotated"
	RoleRevoked         Action = "role.revoked"
	RoleRemoved         Action = "role.removed"
	RoleExpired         Action = "role.expired"
	OverlayActive       Action = "legacy_roles.opted_in"
	OverlayLost         Action = "legacy_roles.opt_in_lost" // on the server; the owner has asked for another
	ChangeEnded         Action = "login.change_ended"       // without the agent's proof
	LoginRotated        Action = "login.rotated"
	LoginRevealed       Action = "login.revealed"
	OperationCanceled   Action = "operation.canceled"
	OperationEndOrder   Action = "operation.end_ordered"    // by an operator; the operation itself says how it ended
	CancelOrder         Action = "operation.cancel_ordered" // likewise, of one that runs
	OperationRetried    Action = "operation.retried"        // before its time, by an operator
	MemberAdded         Action = "member.added"
	MemberRoleChanged   Action = "member.role_changed"
	MemberRemoved       Action = "member.removed"
	InvitationCreated   Action = "invitation.created"
	InvitationResent    Action = "invitation.resent"
	InvitationRevoked   Action = "invitation.revoked"
	InvitationAccepted  Action = "invitation.accepted"
	InvitationExpired   Action = "invitation.expired"
	InvitationNotSent   Action = "invitation.mail_failed"
	TimeoutsChanged     Action = "query_timeouts.changed"
	TimeoutsFailed      Action = "query_timeouts.change_failed"
	ExtensionRequested  Action = "extension.requested"
	ExtensionFinished   Action = "extension.finished"
	PreviewExtended     Action = "preview.extended"
	PreviewScheduled    Action = "preview.backup_policy_changed"
	BackupsScheduled    Action = "database.backup_policy_changed"
	PreviewReleased     Action = "preview.released" // asked to be deleted while another operation was open
	PreviewExpired      Action = "preview.expired"  // its lease has ended, and the service deletes it

	AccountCreated    Action = "account.created" // with its owner
	AccountChanged    Action = "account.changed" // its plan, or an exception to it
	AccountAutoEnroll Action = "account.auto_enrolment_changed"
	AccountSuspended  Action = "account.suspended"
	AccountResumed    Action = "account.resumed"
	KeyCreated        Action = "api_key.created"
	KeyChanged        Action = "api_key.changed"
	KeyReplaced       Action = "api_key.replaced"
	KeyRevoked        Action = "api_key.revoked"
	SessionOpened     Action = "session.opened" // a person has logged in
	SessionsEnded     Action = "session.others_ended"
	AllSessionsEnded  Action = "session.all_ended"     // by the operator
	PasswordReset     Action = "person.password_reset" // by a link in a mail
	PasswordChanged   Action = "person.password_changed"
	FactorAdded       Action = "person.factor_added"
	FactorRemoved     Action = "person.factor_removed"
	LinkMade          Action = "person.link_made" // by the operator, to choose a password
	FactorsReset      Action = "person.factors_reset"
	PasskeyAdded      Action = "person.passkey_added"
	PasskeyRemoved    Action = "person.passkey_removed"
	RecoveryRenewed   Action = "person.recovery_codes_renewed"
	SignOnLinked      Action = "person.sign_on_linked"
	SignOnUnlinked    Action = "person.sign_on_unlinked"
	Enrolled          Action = "database.enrolled" // for limited-rollout routes
	Unenrolled        Action = "database.unenrolled"
	LegacyActivated   Action = "legacy_roles.activated"
	LegacyDeactivated Action = "legacy_roles.deactivated"

	FeatureEnabled   Action = "feature.enabled"
	FeatureDisabled  Action = "feature.disabled"
	MaintenanceBegun Action = "maintenance.begun"
	MaintenanceEnded Action = "maintenance.ended"
	ServerAdded      Action = "server.added"
	ServerChanged    Action = "server.changed"
	ServerDrained    Action = "server.drained" // its databases are being moved to others
	DrainStopped     Action = "server.drain_stopped"
	ServerRemoved    Action = "server.removed"
	DrillOrdered     Action = "drill.ordered"
	ArchiveKeyShown  Action = "server.archive_key_shown" // to the operator
	ExtensionTried   Action = "extension.tried"          // with another outcome than before

	NamespaceCreated Action = "ci_namespace.created"
	NamespaceRevoked Action = "ci_namespace.revoked"
	CIKeyCreated     Action = "ci_key.created"
	CIKeyRevoked     Action = "ci_key.revoked"
	CIKeyExchanged   Action = "ci_key.exchanged" // for a token
	CITrustAdded     Action = "ci_trust.added"
	CITrustRemoved   Action = "ci_trust.removed"

	CertificateKeyCreated Action = "certificate_key.created"
	CertificateKeyRotated Action = "certificate_key.rotated"

	KeyringRegistered Action = "keyring.registered"
	KeyringStaged     Action = "keyring.staged"
	KeyringUnstaged   Action = "keyring.unstaged"
	KeyringPromoted   Action = "keyring.promoted"
	KeyringPruned     Action = "keyring.pruned"

	OperatorAdded   Action = "operator.added" // who may use the console
	OperatorRemoved Action = "operator.removed"

	DoctorRepaired Action = "doctor.repaired" // a difference between a server and the metadata

	MetadataRebuilt   Action = "metadata.rebuilt"   // from a snapshot
	MetadataConfirmed Action = "metadata.confirmed" // they count for a server, although it has heard of more
)

// Actor is who acted, or on whose behalf the service did.
type Actor struct {
	// "key:pgh_ABCDEFGH", "user:" and an ID, "operator" or "system". A CI key that a token was exchanged for has " for ", the
	// token's subject, " of " and its issuer after it.
	Name string `db:"actor"`
	// UserID is the person, for a key the one who holds it: a key that is replaced gets another prefix, so its name does not lead to
	// the person for long. Empty: the operator, the service itself, or somebody on a host of a version that stored no persons.
	UserID id.UserID `db:"user_id"`
}

// The actors without a key.
var (
	Operator = Actor{Name: "operator"}
	System   = Actor{Name: "system"}
)

// ByKey is a person with a key, which is named by its visible prefix.
func ByKey(prefix string, person id.UserID) Actor { return Actor{"key:" + prefix, person} }

// ByToken is ByKey for a key that the token of an issuer was exchanged for.
func ByToken(prefix, issuer, subject string, person id.UserID) Actor {
	return Actor{"key:" + prefix + " for " + subject + " of " + issuer, person}
}

// ByUser is a person who acted without a key.
func ByUser(person id.UserID) Actor { return Actor{"user:" + string(person), person} }

// Details hold strings only, so that an entry never changes its meaning. What an operator did has the name of the operator's user
// in OperatorDetail, where that is known.
type Details map[string]string

// Details that entries of operators have: the name, and why something was done.
const (
	OperatorDetail = "operator"
	ReasonDetail   = "reason"
)

// Changes are the details of a change of settings: of each that differs, what it was and what it is. A setting that only one side
// has was, or is, nothing.
func Changes(before, after Details) Details {
	changes := Details{}
	for name, is := range after {
		if was := before[name]; was != is {
			changes[name] = orNone(was) + " -> " + orNone(is)
		}
	}
	for name, was := range before {
		if _, kept := after[name]; !kept {
			changes[name] = was + " -> none"
		}
	}
	return changes
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// Entry is one line of the activity log.
type Entry struct {
	ID         id.AuditID
	At         time.Time
	AccountID  id.AccountID
	DatabaseID id.DatabaseID // empty for entries about no database; with AccountID, for those about the installation
	Actor
	Action  Action
	Details Details
}
