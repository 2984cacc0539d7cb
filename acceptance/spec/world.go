package spec

import (
	"net/netip"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/fakes/inbox"
)

// World is a running service, as its operator, its customers and the customers' applications see it.
type World struct {
	Operator Operator
	// Hosts are the API hosts of the service: at least two, which share all state. Each returns a client for a key, with a proxy
	// before the host that tells it an address of the client's own, unless a request names one in the header ForwardedFor.
	Hosts []func(key string) Client
	// Routes is the table of routes.
	Routes []Route
	// Connect logs in to a database as an application does: with TLS, through the pooler.
	Connect func(l Login) (Session, error)
	// Restore loads a backup file into a bare PostgreSQL and returns the notes that it finds there.
	Restore func(file []byte) (notes []string, err error)
	// Pass lets a short time pass.
	Pass func(d time.Duration)
	// Batch is the host that works on queued operations.
	Batch Batch
	// HoldBackup keeps a backup of the database from finishing, until release is called.
	HoldBackup func(db Created) (release func(), err error)
	// Spoil puts something into the database that cannot be restored from a backup.
	Spoil func(db Created) error
	// Predate makes a backup one of a time before there were additional roles.
	Predate func(db Created, file backup.Filename) error
	// Rot changes a bit of a backup where it is stored, and has the service read it again soon.
	Rot func(db Created, file backup.Filename) error
	// AskUsage has the service ask the database server soon what databases use, whenever it has asked last.
	AskUsage func() error
	// OnServer is what is done on the server without the service.
	OnServer OnServer
	// Agent is the agent on the first database server.
	Agent Agent
	// Mails returns the mails that an address has had, the oldest first.
	Mails func(to string) ([]Mail, error)
	// Writes is how many changing requests a key may make per minute.
	Writes int

	// A driver may lack the following; they are nil then, and the matrix gives the reason.

	Clock Clock
	SQL   SQL
	// Outages make parts of the service fail.
	Outages Outages
	// Receivers get the webhooks of finished operations. Every URL of a public host name has one.
	Receivers *inbox.Inbox
	// Pipelines make tokens of a CI system.
	Pipelines Pipelines
	// OldAgent has the agent on the first database server be of an earlier protocol, or again of ours.
	OldAgent func(on bool)
	// Archive is that of the first database server.
	Archive Archive
	// Restores says that the agent restores databases in place.
	Restores bool
}

// ForwardedFor is the header in which the service's proxy tells a client's address.
const ForwardedFor = "X-Forwarded-For"

// Route is one row of the table of routes, without what only the service needs to know.
type Route struct {
	Method, Path string
	FullAccount  bool   // full-account keys only
	Preview      bool   // preview CI keys only
	Public       bool   // no key at all
	Target       string // what the first parameter names: "database", "operation", "webhook", "preview", "namespace" or ""
	Body         []byte // one with every field that the route takes, as JSON; nil where it takes none
	Stream       bool   // takes bytes
}

func (r Route) String() string { return r.Method + " " + r.Path }

// Ability is something that only some drivers can do.
type Ability string

// The abilities.
const (
	MovesTime    Ability = "moves time"    // Clock
	RunsRealSQL  Ability = "runs real SQL" // SQL
	HasOutages   Ability = "has outages"   // Outages
	HasReceivers Ability = "has receivers" // Receivers
	Restoring    Ability = "restores"      // Restores
	HasPipelines Ability = "has pipelines" // Pipelines
	AgesAgents   Ability = "ages agents"   // OldAgent
	Archives     Ability = "archives"      // Archive
)

// Abilities returns the optional abilities that the world has.
func (w World) Abilities() map[Ability]bool {
	return map[Ability]bool{
		MovesTime: w.Clock != nil, RunsRealSQL: w.SQL != nil, HasOutages: w.Outages != nil, HasReceivers: w.Receivers != nil,
		Restoring: w.Restores, HasPipelines: w.Pipelines != nil, AgesAgents: w.OldAgent != nil,
		Archives: w.Archive != nil,
	}
}

// Operator is who runs the service.
type Operator interface {
	CIOperator
	Mover
	NewAccount(plan string) (Account, error)
	// SetCredentialValidity changes how long a password of an additional role is good.
	SetCredentialValidity(a Account, d time.Duration) error
	// SetQuota changes how many databases an account may have.
	SetQuota(a Account, databases int) error
	// SetBytes changes how many bytes one database of an account, and its backups, may take.
	SetBytes(a Account, database, backups int64) error
	// SetPITR changes how many days back an account's recovery to a point in time reaches.
	SetPITR(a Account, days int) error
	// RunDrill has the server of a database have a moment of it back, beside it, to see that it can.
	RunDrill(of id.DatabaseID, at time.Time) error
	// SetPreviewCopies lets previews of an account have data of its databases, or not.
	SetPreviewCopies(a Account, on bool) error
	// OpenDatabase lets customers in again whose database was closed for its size.
	OpenDatabase(of id.DatabaseID, reason string) error
	// Suspend has an account not be served until Resume.
	Suspend(a Account, reason string) error
	Resume(a Account, reason string) error
	// SetLifecycle starts or stops a database in the operator's name; BackUp and Restore do what they say. They return when it is
	// done.
	SetLifecycle(of id.DatabaseID, action database.Event, reason string) error
	BackUp(of id.DatabaseID, reason string) error
	Restore(of id.DatabaseID, file backup.Filename, reason string) error
	// CreateDatabase makes a database of an account, and returns it with the password of its owner's login.
	CreateDatabase(a Account, name, reason string) (of id.DatabaseID, password string, err error)
	// PretendUpgrade has the record of a database say that it came to PostgreSQL 17 from 16; ConfirmUpgrade ends its way back.
	PretendUpgrade(of id.DatabaseID) error
	ConfirmUpgrade(of id.DatabaseID, reason string) error
	// DeleteUnverified deletes a database without a deletion backup.
	DeleteUnverified(of id.DatabaseID, reason string) error
	// Undelete brings a deleted database back, also one without a deletion backup.
	Undelete(of id.DatabaseID, reason string) error
	// RemoveMember ends the membership and the invitation of an address.
	RemoveMember(of id.DatabaseID, email string) error
	// NewKey makes an API key: of full access, or of the given databases only.
	NewKey(a Account, databases ...id.DatabaseID) (Key, error)
	// SetKey changes when a key ends and where it may be used from, as the operator's command takes it; empty: as it is.
	SetKey(k Key, expires string, networks ...string) error
	// ReplaceKey gives a key a new text.
	ReplaceKey(k Key) (Key, error)
	RevokeKey(k Key) error
	// NewCIKey makes a preview CI key.
	NewCIKey(a Account) (Key, error)
	SetMaintenance(on bool) error
	// SetFeature turns a feature of the whole installation on or off.
	SetFeature(name string, on bool) error
	// Enroll opens a limited-rollout route for a database.
	Enroll(of id.DatabaseID, route string) error
	// ActivateLegacyRoles lets a database with a single login have additional roles, or withdraws that.
	ActivateLegacyRoles(of id.DatabaseID, on bool) error
	// QualifyExtensions has the database server prove that backups with extensions are restorable, where it did not before.
	QualifyExtensions() error
	// RotateSecrets encrypts every stored secret with a new key, while the service runs; DropOldSecretKeys then forgets the old.
	RotateSecrets() error
	DropOldSecretKeys() error
	// RotateCertificateKey has certificates signed with a new key instead of that one.
	RotateCertificateKey(named id.CertificateKeyID) error
	// AddDeadServer registers a second database server, with more room than the first, whose agent nobody reaches. retire takes it
	// out of use again.
	AddDeadServer() (retire func() error, err error)
	// EndChange ends a pending change of a login, and returns what was found at the login.
	EndChange(of id.DatabaseID, change id.OperationID, reason string) (found string, err error)
	// CheckStorage says what is wrong where the agent keeps backups; empty: nothing is.
	CheckStorage() (wrong string, err error)
	// MakeForeign puts a database on the server that the service did not make.
	MakeForeign(name string) error
	// ServerObjects returns the names of the databases and logins that exist on the database server.
	ServerObjects() ([]string, error)
}

// OnServer is what owners of databases, their applications and the operator do on the database server without the service.
type OnServer interface {
	// Withdraw has the owner revoke CONNECT from a role.
	Withdraw(db Created, username string) error
	// WithdrawAtOnce has the owner withdraw CONNECT as soon as the role exists, in the middle of its setup, which does not get
	// past that. end waits for it, or gives up.
	WithdrawAtOnce(db Created, username string) (end func() error, err error)
	// Owner has the owner run SQL that the service asked for.
	Owner(db Created, statement string) error
	// Entangle has the owner of a database create tables and grant them to a role, of this database or of another one.
	Entangle(in Created, username string, tables int) error
	// Disentangle undoes Entangle.
	Disentangle(in Created, username string) error
	// SetPassword has a login change its own password.
	SetPassword(l Login, password string) error
	// OwnExtension has the owner install a version of an extension in a schema, which is made where it is missing.
	OwnExtension(in Created, name extension.Name, version, schema string) error
	// BlockExtension has the owner put something in the way of citext, or take it away.
	BlockExtension(in Created, on bool) error
	// Obstruct has the operator take the agent's right to administer a login, or give it back.
	Obstruct(username string, on bool) error
	// Grow has the owner write until the database takes so many bytes at least; Shrink has the owner empty what Grow has filled.
	Grow(db Created, bytes int64) error
	Shrink(db Created) error
	// Identify has the owner make the rows of Session.Write such that they can be told apart, as a move demands; Keyless makes a
	// table public.keyless whose rows cannot be.
	Identify(db Created) error
	Keyless(db Created) error
	// DropLogin has the operator drop a login of a database, with all grants to it.
	DropLogin(in Created, username string) error
}

// Account is a customer's account and the user who owns it.
type Account struct {
	ID     id.AccountID
	UserID id.UserID
	Email  string
}

// Key is an API key; Text is what requests carry.
type Key struct {
	ID   id.KeyID
	Text string
}

// Login is an attempt to connect to a database.
type Login struct {
	Database, Username, Password string
	From                         netip.Addr
	// At is the address, as host and port, where it is made; empty: at the first database server.
	At string
}

// Addresses that applications connect from.
var (
	Home = netip.MustParseAddr("127.0.0.2")
	Away = netip.MustParseAddr("127.0.0.3")
)

// Session is an open connection of an application.
type Session interface {
	// Write stores notes in the application's table.
	Write(notes ...string) error
	// Alive reports whether the connection still works.
	Alive() bool
	// Ended reports whether the connection was closed by the service; one that merely does not answer was not.
	Ended() bool
	Close()
}

// Batch is the host that works on queued operations. While it is stopped they stay queued.
type Batch interface {
	Stop() error
	Start() error
}

// Agent can be stopped and started again.
type Agent interface {
	Stop() error
	Start() error
	// SetFull leaves no room for backups, or frees it again.
	SetFull(full bool) error
	// SetAway makes what is stored of backups unreachable, or reachable again.
	SetAway(away bool) error
}

// Archive is what a database server keeps of what is written there.
type Archive interface {
	// Keep has the server keep an archive, as it does at first, or none.
	Keep(on bool) error
	// Lose has the archive lose what is written between two times, which are not over yet, and maybe more around them.
	Lose(from, to time.Time) error
}

// Clock moves the time of the whole service, and lets the service do its periodic work.
type Clock interface {
	Advance(d time.Duration) error
	Now() time.Time
}

// Outages make a part of the service fail without warning, and bring it back.
type Outages interface {
	Metadata(gone bool) error // the metadata database
	Server(gone bool) error   // PostgreSQL on the database server
	Pooler(gone bool) error   // PgBouncer
}

// Talk is a connection on which an application runs one statement after another.
type Talk interface {
	Session
	Say(statement string) ([]string, error)
}

// SQL runs statements of an application. An error is PostgreSQL's own; its SQLSTATE comes with it.
type SQL interface {
	// Run logs in and runs statements one by one, and returns the first column of the last one's rows.
	Run(l Login, statements ...string) ([]string, error)
	// Direct does the same without the pooler, on PostgreSQL's own port.
	Direct(l Login, statements ...string) ([]string, error)
	// Psql runs a statement with psql, which is given the connection string as it stands and the service's CA.
	Psql(connectionString, statement string) (string, error)
	// Talk logs in and stays.
	Talk(l Login) (Talk, error)
	// State returns the SQLSTATE of an error, empty where PostgreSQL gave none.
	State(err error) string
}
