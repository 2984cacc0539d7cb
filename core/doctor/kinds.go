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
	TellAccount    Repair = "tell the agent whose the database is"
	RenderPooler   Repair = "have the agent write the pooler's files again"
	CloseOperation Repair = "close the operation at the agent, which removes what it left"
	DropUpload     Repair = "remove the upload"
	RemoveFile     Repair = "remove the file"
)

// Repairs lists them.
var Repairs = []Repair{
	SetAccess, SendSettings, SendAllowlist, TellAccount, RenderPooler, CloseOperation, DropUpload, RemoveFile,
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
	OtherProtocol     Code = "other_protocol"
	ListCut           Code = "list_cut"

	StatusStuck       Code = "status_stuck"
	PurgeRefused      Code = "purge_refused"
	DatabaseMissing   Code = "database_missing"
	DatabaseUnknown   Code = "database_unknown"
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

	StrayDatabase   Code = "stray_database"
	StrayRole       Code = "stray_role"
	CopyLeft        Code = "copy_left"
	JobLeft         Code = "job_left"
	ReservationLeft Code = "reservation_left"

	FileMissing    Code = "file_missing"
	FileSize       Code = "file_size"
	FileIncomplete Code = "file_incomplete"
	FileDamaged    Code = "file_damaged"
	FileUnknown    Code = "file_unknown"
	CompanionLeft  Code = "companion_left"
	PartialLeft    Code = "partial_left"
	UploadUnknown  Code = "upload_unknown"
)

// Notice reports whether customers may do that themselves, as far as is known: it is told, and is no difference.
func (c Code) Notice() bool {
	return slices.Contains([]Code{PasswordDiffers, OverlayReserved, RightsUnread, SchemaGiven, GroupRights}, c)
}

// Kinds lists every kind in the order of the docs. No other finding is made.
var Kinds = []Kind{
	{ServerUnreachable, "the server's agent does not answer, so nothing is known of it", Nothing},
	{OtherProtocol, "the server's agent has another protocol, and says nothing", Nothing},
	{ListCut, "the server has more than the agent lists at once: look again when this is mended", Nothing},

	{StatusStuck, "the database has a passing status, and no operation is open", Nothing},
	{PurgeRefused, "the purge of the database waits until what its server says is mended, and then goes on by itself", Nothing},
	{DatabaseMissing, "the agent's ledger does not have the database", Nothing},
	{DatabaseUnknown, "the agent's ledger has a database without a record", Nothing},
	{DatabaseGone, "PostgreSQL has no database of the OID that the ledger knows", Nothing},
	{DatabaseRenamed, "the database has another name", Nothing},
	{DatabaseOwner, "the database has another owner than its holder role", Nothing},
	{RoleModelDiffers, "the ledger has another role model", Nothing},
	{CapDiffers, "the ledger has another connection cap", Nothing},
	{LimitDiffers, "PostgreSQL's connection limit of the database is another", Nothing},
	{ServiceDiffers, "the agent has the database in service or out of it, otherwise than its status says", Nothing},
	{ConnectionsDiffer, "PostgreSQL says otherwise whether it allows connections to the database", Nothing},
	{PublicRights, "everybody has rights on the database", Nothing},
	{OwnerRights, "the owner login has other rights on the database than it was given", Nothing},
	{AccountDiffers, "the agent takes the database for another account's", TellAccount},
	{AccessDiffers, "the agent was told otherwise whether customers may log in", SetAccess},
	{AllowlistDiffers, "the agent has other networks than the allowlist", SendAllowlist},
	{SettingsDiffer, "the agent has other settings of the service", SendSettings},
	{SettingDiffers, "PostgreSQL has another value for everybody in the database", SendSettings},

	{RoleMissing, "the agent's ledger does not have the role", Nothing},
	{RoleGone, "PostgreSQL has no such role, or another one of that name", Nothing},
	{RoleUnknown, "the agent's ledger has a role that the database should not have", Nothing},
	{RolePowers, "the role may do what no role of a database may", Nothing},
	{RoleLimit, "the pooler's connection limit of the login is another", Nothing},
	{LoginLimit, "PostgreSQL's connection limit of the role is another", Nothing},
	{LoginEnabled, "the ledger says otherwise whether the login may log in while its database is open", Nothing},
	{LoginDiffers, "PostgreSQL says otherwise whether the role may log in", SetAccess},
	{GateDiffers, "the pooler's gate of the login stands otherwise", SetAccess},
	{CredentialDiffers, "the ledger knows another generation of the login's password: rotate it", Nothing},
	{PasswordDiffers, "the password was changed in PostgreSQL, and the one that is revealed is refused", Nothing},
	{ValidityDiffers, "the login's password is valid until another time", Nothing},
	{MembershipMissing, "the role is not a member as it should be", Nothing},
	{MembershipUnexpected, "the role is a member of a role that it should not be in", Nothing},
	{MemberUnexpected, "the role has a member that it should not have", Nothing},
	{OverlayReserved, "the opt-in for additional roles is unfinished: the owner is to repeat it", Nothing},

	{RightsUnread, "nobody could look into the database now", Nothing},
	{SchemaOwner, "the schema belongs to a role that no customer can give it to", Nothing},
	{SchemaGiven, "the schema is gone, or is another login's", Nothing},
	{GroupRights, "the group lacks what it was given when it was made", Nothing},

	{PoolerDown, "PgBouncer does not answer", Nothing},
	{PoolerFiles, "PgBouncer's files say otherwise", RenderPooler},
	{PoolerLive, "PgBouncer uses something else", RenderPooler},

	{StrayDatabase, "PostgreSQL has a database of ours that the ledger does not know", Nothing},
	{StrayRole, "PostgreSQL has a role of ours that the ledger does not know", Nothing},
	{CopyLeft, "a copy stands whose operation is over", CloseOperation},
	{JobLeft, "a job has no result, and its operation is over", CloseOperation},
	{ReservationLeft, "room is reserved for an operation that is over", Nothing},

	{FileMissing, "a backup has no file", Nothing},
	{FileSize, "a backup's file has another size", Nothing},
	{FileIncomplete, "a backup lacks a file that belongs to it", Nothing},
	{FileDamaged, "a backup's file is not what was written", Nothing},
	{FileUnknown, "a file belongs to no backup", Nothing},
	{CompanionLeft, "a file belongs to a backup that is not there", RemoveFile},
	{PartialLeft, "an unfinished file is left, which the agent removes when it starts", Nothing},
	{UploadUnknown, "an upload has no record", DropUpload},
}

var kinds = func() map[Code]Kind {
	all := make(map[Code]Kind)
	for _, k := range Kinds {
		all[k.Code] = k
	}
	return all
}()
