package doctor

import "slices"

// Code names a kind of finding.
type Code string

// Repair is what can be done about a finding. Nothing that could lose data is ever one.
type Repair string

// The repairs.
const (
	Nothing        Repair = ""
	SetAccess      Repair = "open or close the database's gates and logins again"
	SendSettings   Repair = "send the database's settings again"
	SendAllowlist  Repair = "send the database's allowlist again"
	TellAccount    Repair = "tell the agent the account of the database"
	RenderPooler   Repair = "have the agent write the pooler's files again"
	CloseOperation Repair = "close the operation at the agent, which removes what it left"
	DropUpload     Repair = "remove the upload"
	RemoveFile     Repair = "remove the file"
	Rejoin         Repair = "put a database back into service that is not deleted"
	EndForward     Repair = "have the server send nobody on any more for the database"
	SendForward    Repair = "tell the server again whom to send on"
)

// Repairs lists them.
var Repairs = []Repair{
	SetAccess, SendSettings, SendAllowlist, TellAccount, RenderPooler, CloseOperation, DropUpload, RemoveFile, Rejoin, EndForward,
	SendForward,
}

// Kind is a kind of finding.
type Kind struct {
	Code   Code
	Says   string
	Repair Repair
}

// The codes.
const (
	ServerUnreachable Code = "server_unreachable"
	ServerRefuses     Code = "server_refuses"
	OtherProtocol     Code = "other_protocol"
	ArchiveKeyDiffers Code = "archive_key_differs"
	SnapshotOld       Code = "snapshot_old"
	DrillFailed       Code = "drill_failed"
	ListCut           Code = "list_cut"

	StatusStuck       Code = "status_stuck"
	PurgeRefused      Code = "purge_refused"
	DatabaseMissing   Code = "database_missing"
	DatabaseUnknown   Code = "database_unknown"
	DatabaseElsewhere Code = "database_elsewhere"
	DatabaseGone      Code = "database_gone"
	DatabaseRenamed   Code = "database_renamed"
	DatabaseOwner     Code = "database_owner"
	RoleModelDiffers  Code = "role_model_differs"
	CapDiffers        Code = "cap_differs"
	LimitDiffers      Code = "limit_differs"
	ServiceDiffers    Code = "service_differs"
	ConnectionsDiffer Code = "connections_differ"
	PublicRights      Code = "public_rights"
	OwnerRights       Code = "owner_rights"
	AccountDiffers    Code = "account_differs"
	BackupKeyDiffers  Code = "backup_key_differs"
	AccessDiffers     Code = "access_differs"
	AllowlistDiffers  Code = "allowlist_differs"
	SettingsDiffer    Code = "settings_differ"
	SettingDiffers    Code = "setting_differs"

	RoleMissing          Code = "role_missing"
	RoleGone             Code = "role_gone"
	RoleUnknown          Code = "role_unknown"
	RolePowers           Code = "role_powers"
	RoleLimit            Code = "role_limit"
	LoginLimit           Code = "login_limit"
	LoginEnabled         Code = "login_enabled"
	LoginDiffers         Code = "login_differs"
	GateDiffers          Code = "gate_differs"
	CredentialDiffers    Code = "credential_differs"
	PasswordDiffers      Code = "password_differs"
	ValidityDiffers      Code = "validity_differs"
	MembershipMissing    Code = "membership_missing"
	MembershipUnexpected Code = "membership_unexpected"
	MemberUnexpected     Code = "member_unexpected"
	OverlayReserved      Code = "overlay_reserved"

	RightsUnread Code = "rights_unread"
	SchemaOwner  Code = "schema_owner"
	SchemaGiven  Code = "schema_given"
	GroupRights  Code = "group_rights"

	PoolerDown  Code = "pooler_down"
	PoolerFiles Code = "pooler_files"
	PoolerLive  Code = "pooler_live"

	StrayDatabase Code = "stray_database"
	StrayRole     Code = "stray_role"
	CopyLeft      Code = "copy_left"
	JobLeft       Code = "job_left"

	ForwardUnknown Code = "forward_unknown"
	ForwardMissing Code = "forward_missing"
	ForwardFails   Code = "forward_fails"

	StorageAway    Code = "storage_away"
	FileMissing    Code = "file_missing"
	FileSize       Code = "file_size"
	FileIncomplete Code = "file_incomplete"
	FileDamaged    Code = "file_damaged"
	FileUnknown    Code = "file_unknown"
	CompanionLeft  Code = "companion_left"
	PartialLeft    Code = "partial_left"
	UploadUnknown  Code = "upload_unknown"
)

// Notice reports whether customers may have done that themselves: it is reported, but is not a difference.
func (c Code) Notice() bool {
	return slices.Contains([]Code{PasswordDiffers, OverlayReserved, RightsUnread, SchemaGiven, GroupRights}, c)
}

// Kinds lists every kind in the order of the docs. No other finding is made.
var Kinds = []Kind{
	{ServerUnreachable, "the server's agent does not answer, or cannot be asked", Nothing},
	{ServerRefuses, "the server's agent answers, and refuses to be asked", Nothing},
	{StorageAway, "where the agent keeps backups does not answer, so its files are not compared", Nothing},
	{OtherProtocol, "the server's agent uses another protocol", Nothing},
	{
		ArchiveKeyDiffers, "the agent encrypts the archive of its server with another key than the metadata have, or that key cannot " +
			"be opened: without the server the archive is lost", Nothing,
	},
	{
		SnapshotOld, "the server is to keep snapshots of the metadata, and has none of the last hour: the log of the batch " +
			"hosts says why", Nothing,
	},
	{
		DrillFailed, "the last drill of the server that could tell has failed: what its archive gives back may be wrong", Nothing,
	},
	{ListCut, "the server has more than the agent lists at once; run the doctor again after repairing this", Nothing},

	{StatusStuck, "no operation is open that would bring the database out of its status", Nothing},
	{PurgeRefused, "the server refuses to purge the database; the purge continues once the cause is fixed, or is ended", Nothing},
	{DatabaseMissing, "the agent's ledger does not have the database: database finish-deletion", Nothing},
	{DatabaseUnknown, "the agent's ledger has a database without a record: database adopt, or database drop-unknown", Nothing},
	{
		DatabaseElsewhere, "the server has a database whose record names another server, and no move is open: database adopt, where " +
			"the other one has it no more, and otherwise database drop-unknown", CloseOperation,
	},
	{DatabaseGone, "PostgreSQL has no database with the OID in the ledger", Nothing},
	{DatabaseRenamed, "the database has another name", Nothing},
	{DatabaseOwner, "the database does not belong to its holder role", Nothing},
	{RoleModelDiffers, "the ledger has another role model", Nothing},
	{CapDiffers, "the ledger has another connection cap", Nothing},
	{LimitDiffers, "the database has another connection limit in PostgreSQL", Nothing},
	{
		ServiceDiffers, "the database is in service but should not be, or the reverse: database recover, or database finish-deletion",
		Rejoin,
	},
	{ConnectionsDiffer, "PostgreSQL allows connections to the database but should not, or the reverse", Nothing},
	{PublicRights, "PUBLIC has rights on the database", Nothing},
	{OwnerRights, "the owner login has other rights on the database than it was given", Nothing},
	{
		BackupKeyDiffers, "the agent encrypts backups with another key than the metadata have, or that key cannot be opened: " +
			"without the server its backups are lost", Nothing,
	},
	{AccountDiffers, "the agent has another account for the database", TellAccount},
	{AccessDiffers, "the agent lets customers log in but should not, or the reverse", SetAccess},
	{AllowlistDiffers, "the agent has other networks than the allowlist", SendAllowlist},
	{SettingsDiffer, "the agent has other settings for the database", SendSettings},
	{SettingDiffers, "PostgreSQL has another database-wide value", SendSettings},

	{RoleMissing, "the agent's ledger does not have the role: database drop-role, or its owner deletes it", Nothing},
	{RoleGone, "PostgreSQL does not have the role, or has another one of that name", Nothing},
	{
		RoleUnknown, "the agent's ledger has a role that the database should not have: database adopt-role, or database drop-role",
		Nothing,
	},
	{RolePowers, "the role has attributes that no role of a database may have", Nothing},
	{RoleLimit, "the login has another connection limit in the pooler", Nothing},
	{LoginLimit, "the role has another connection limit in PostgreSQL", Nothing},
	{LoginEnabled, "the ledger has the login enabled but should not, or the reverse", Nothing},
	{LoginDiffers, "PostgreSQL lets the role log in but should not, or the reverse", SetAccess},
	{GateDiffers, "the pooler's gate of the login is open but should be closed, or the reverse", SetAccess},
	{CredentialDiffers, "the ledger has another generation of the login's password: rotate it", Nothing},
	{PasswordDiffers, "the password was changed in PostgreSQL; the one that the service reveals does not work", Nothing},
	{ValidityDiffers, "the login's password expires at another time", Nothing},
	{MembershipMissing, "the role lacks a membership, or has it with other options", Nothing},
	{MembershipUnexpected, "the role has a membership that it should not have", Nothing},
	{MemberUnexpected, "the role has a member that it should not have", Nothing},
	{OverlayReserved, "the opt-in for additional roles is unfinished; the owner should repeat it", Nothing},

	{RightsUnread, "the database could not be examined", Nothing},
	{SchemaOwner, "the schema belongs to a role that no customer can give it to", Nothing},
	{SchemaGiven, "the schema was dropped, or belongs to another login", Nothing},
	{GroupRights, "the group lacks rights that it was given when it was made", Nothing},

	{PoolerDown, "PgBouncer does not answer", Nothing},
	{PoolerFiles, "PgBouncer's files differ from the ledger", RenderPooler},
	{PoolerLive, "PgBouncer's loaded configuration differs from the ledger", RenderPooler},

	{StrayDatabase, "PostgreSQL has a database of the service that is not in the ledger", Nothing},
	{StrayRole, "PostgreSQL has a role of the service that is not in the ledger", Nothing},
	{CopyLeft, "a copy is left, but its operation has ended, or has no record", CloseOperation},
	{JobLeft, "a job is unfinished, but its operation has ended, or has no record", CloseOperation},

	{ForwardUnknown, "the server sends on who comes for a database, and the metadata do not have it do so", EndForward},
	{ForwardMissing, "the server does not send on who comes for a database that it has left, as the metadata have it", SendForward},
	{
		ForwardFails, "who comes for a database that has left the server cannot be sent on: the database's server is away, or does " +
			"not prove that it is the one", Nothing,
	},

	{FileMissing, "a backup's file is missing: backup forget, where it does not come back", Nothing},
	{FileSize, "a backup's file has another size", Nothing},
	{FileIncomplete, "a backup lacks one of its companion files", Nothing},
	{FileDamaged, "a backup's file is damaged", Nothing},
	{FileUnknown, "a file belongs to no backup: backup adopt, where it is one", Nothing},
	{CompanionLeft, "a companion file is left of a backup that is gone", RemoveFile},
	{PartialLeft, "a file is left that only an operation needed; the agent removes it, at the latest when it starts", Nothing},
	{UploadUnknown, "an upload has no record", DropUpload},
}

var kinds = func() map[Code]Kind {
	all := make(map[Code]Kind)
	for _, k := range Kinds {
		all[k.Code] = k
	}
	return all
}()
