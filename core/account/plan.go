// Package account holds people, accounts, plans, API keys and the table of who may do what.
package account

import (
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/pgversion"
)

// Plan is the subscription of an account; it determines its quotas.
type Plan string

// The plans.
const (
	Free     Plan = "free"
	Pro      Plan = "pro"
	Business Plan = "business"
)

// Plans are all, the smallest first.
var Plans = []Plan{Free, Pro, Business}

// ParsePlan accepts exactly the three names.
func ParsePlan(s string) (Plan, error) { return fault.OneOf("plan", s, Plans...) }

// AllowsAPI reports whether accounts on the plan may use the API (spec, section "Authentication").
func (p Plan) AllowsAPI() bool { return p == Pro || p == Business }

// Quotas bound one account.
type Quotas struct {
	Databases     int // including previews
	ConnectionCap int // server connections of one managed database
	BackupDays    int // days that a backup is kept
	VerifyBackups bool
	DatabaseBytes int64 // of one database on disk
	BackupBytes   int64 // of all backup files of one database
	// CredentialValidity ends additional roles' passwords; zero means never.
	CredentialValidity time.Duration
}

const gib = 1 << 30

// The bytes of backups are several times those of a database: a compressed file takes a fraction of it, and a day has one.
var planQuotas = map[Plan]Quotas{
	Free: {
		Databases: 1, ConnectionCap: 20, BackupDays: 7, VerifyBackups: true, DatabaseBytes: 1 * gib, BackupBytes: 4 * gib,
	},
	Pro: {
		Databases: 10, ConnectionCap: 60, BackupDays: 14, VerifyBackups: true, DatabaseBytes: 20 * gib, BackupBytes: 100 * gib,
	},
	Business: {
		Databases: 100, ConnectionCap: 200, BackupDays: 30, VerifyBackups: true, DatabaseBytes: 200 * gib, BackupBytes: 2000 * gib,
	},
}

// PITR is how many days back recovery to a point in time reaches, by plan. A plan that is not named has none, as one with 0.
type PITR map[Plan]int

// DefaultPITR is where an installation has chosen nothing else.
func DefaultPITR() PITR { return PITR{Free: 0, Pro: 3, Business: 7} }

// Check returns VALIDATION_ERROR for a plan that is none, or a number of days that is out of range.
func (p PITR) Check() error {
	for plan, days := range p {
		if _, err := ParsePlan(string(plan)); err != nil {
			return err
		}
		if days < 0 || days > mostDays {
			return fault.Invalid("pitr", "must be 0 to %d days", mostDays)
		}
	}
	return nil
}

// Days are those of an account, with an operator's exception.
func (p PITR) Days(of Account) int {
	days := p[of.Plan]
	override(&days, of.PITRDays)
	return days
}

// DatabaseBytes is the quota of one database's bytes on a plan, with an operator's exception.
func DatabaseBytes(plan Plan, exception *int64) int64 {
	return Account{Plan: plan, Overrides: Overrides{DatabaseBytes: exception}}.Quotas().DatabaseBytes
}

// Overrides are an operator's exceptions for one account; nil leaves the plan's value.
type Overrides struct {
	MaxDatabases       *int           `db:"max_databases"`
	ConnectionCap      *int           `db:"connection_cap"`
	BackupDays         *int           `db:"backup_days"`
	PITRDays           *int           `db:"pitr_days"` // see PITR
	VerifyBackups      *bool          `db:"verify_backups"`
	DatabaseBytes      *int64         `db:"database_bytes"`
	BackupBytes        *int64         `db:"backup_bytes"`
	CredentialValidity *time.Duration `db:"credential_validity"`
	// PreviewCopies lets previews have data of the account's databases: otherwise they are for synthetic data only.
	PreviewCopies *bool `db:"preview_copies"`
	// PostgresVersion is the major version of PostgreSQL of new databases that ask for none; nil: the installation's default.
	PostgresVersion *int `db:"postgres_version"`
}

// MinCredentialValidity leaves enough time to create a role or rotate its password, and to distribute the password, before it
// expires.
const MinCredentialValidity = 5 * time.Minute

// Bounds on an operator's exceptions. They are far above what a server holds, and keep out a slip that would only show later: no
// agent makes a database with a larger cap, and a backup kept for longer would have no expiry that JSON's readers understand.
const (
	mostDatabases   = 1_000_000
	mostConnections = 100_000
	mostDays        = 36_500
	mostBytes       = 1 << 50
)

// Validate returns VALIDATION_ERROR for the first exception that is out of range. A CredentialValidity of 0 means forever.
func (o Overrides) Validate() error {
	for _, n := range []struct {
		field     string
		value     *int
		low, high int
	}{
		{"maxDatabases", o.MaxDatabases, 0, mostDatabases},
		{"connectionCap", o.ConnectionCap, 1, mostConnections},
		{"backupDays", o.BackupDays, 1, mostDays},
		{"pitrDays", o.PITRDays, 0, mostDays},
		{"postgresVersion", o.PostgresVersion, pgversion.Oldest, pgversion.Newest},
	} {
		if n.value != nil && (*n.value < n.low || *n.value > n.high) {
			return fault.Invalid(n.field, "must be %d to %d", n.low, n.high)
		}
	}
	for _, n := range []struct {
		field string
		value *int64
	}{{"databaseBytes", o.DatabaseBytes}, {"backupBytes", o.BackupBytes}} {
		if n.value != nil && (*n.value < 1 || *n.value > mostBytes) {
			return fault.Invalid(n.field, "must be 1 to %d", int64(mostBytes))
		}
	}
	if v := o.CredentialValidity; v != nil && *v != 0 && *v < MinCredentialValidity {
		return fault.Invalid("credentialValidity", "must be at least %s, or 0 for no end", MinCredentialValidity)
	}
	return nil
}

// Account owns databases. Exactly one user owns it.
type Account struct {
	ID        id.AccountID `db:"id"`
	OwnerID   id.UserID    `db:"owner_id"`
	Plan      Plan         `db:"plan"`
	CreatedAt time.Time    `db:"created_at"`
	Overrides
	Suspension
}

// User is a person.
type User struct {
	ID        id.UserID `db:"id"`
	Email     string    `db:"email"`
	Name      string    `db:"name"`
	CreatedAt time.Time `db:"created_at"`
	// PasswordHash is as ports.Passwords makes it; empty: the user has no password.
	PasswordHash string `db:"password_hash"`
	// LoggedInAt is when the person last logged in; nil: never.
	LoggedInAt *time.Time `db:"logged_in_at"`
}

// Quotas returns the plan's bounds with the operator's exceptions applied.
func (a Account) Quotas() Quotas {
	q := planQuotas[a.Plan]
	override(&q.Databases, a.MaxDatabases)
	override(&q.ConnectionCap, a.ConnectionCap)
	override(&q.BackupDays, a.BackupDays)
	override(&q.VerifyBackups, a.VerifyBackups)
	override(&q.DatabaseBytes, a.DatabaseBytes)
	override(&q.BackupBytes, a.BackupBytes)
	override(&q.CredentialValidity, a.CredentialValidity)
	return q
}

func override[T any](value *T, with *T) {
	if with != nil {
		*value = *with
	}
}

// NewPostgres is the major version of PostgreSQL of a new database that asks for none, where usual is the installation's default.
func (a Account) NewPostgres(usual int) int {
	override(&usual, a.PostgresVersion)
	return usual
}

// AdmitPreviewCopy returns FEATURE_NOT_AVAILABLE unless the operator lets previews have data of the account's databases.
func (a Account) AdmitPreviewCopy() error {
	if a.PreviewCopies != nil && *a.PreviewCopies {
		return nil
	}
	return fault.New(fault.FeatureNotAvailable, "previews of the account are for synthetic data only")
}

// AdmitDatabase returns PLAN_LIMIT if the account has no room for one more database.
func (a Account) AdmitDatabase(existing int) error {
	if q := a.Quotas(); existing >= q.Databases {
		return fault.New(fault.PlanLimit, "the plan allows %d databases and %d exist", q.Databases, existing)
	}
	return nil
}

// Deleted is what an account has of deleted databases that are not purged yet: previews, or all others.
type Deleted struct {
	Databases int   `db:"databases"`
	Bytes     int64 `db:"bytes"` // as they were last measured, with the files of their backups
}

// Deleted databases count against no quota, and take places and bytes of servers until they are purged. So an account that has
// more of them than these makes no other database: DeletedInAny and DeletedPerDatabase for each database of its quota, or
// DeletedPerDatabase times the bytes of its quotas. A hundred suffice for pipelines that make and delete ten previews a day, with
// the default window of seven days. No deletion is refused because of them.
const (
	DeletedInAny       = 100
	DeletedPerDatabase = 5
)

// AdmitBeside returns PLAN_LIMIT if the account has so many deleted databases that it may make no other one.
func (a Account) AdmitBeside(d Deleted) error {
	q := a.Quotas()
	if most := DeletedInAny + DeletedPerDatabase*q.Databases; d.Databases >= most {
		return fault.New(fault.PlanLimit, "the plan allows no other database while %d deleted ones are not purged yet", d.Databases)
	}
	// In floating point, as an operator's exceptions can have a product beyond 64 bits.
	most := DeletedPerDatabase * float64(q.Databases) * (float64(q.DatabaseBytes) + float64(q.BackupBytes))
	if float64(d.Bytes) >= most {
		return fault.New(fault.PlanLimit, "the plan allows no other database while deleted ones that take %d bytes are not purged yet",
			d.Bytes)
	}
	return nil
}
