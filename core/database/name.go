package database

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9-]{1,48}[a-z0-9]$`)

// reservedNames have a meaning to PostgreSQL, PgBouncer or this service. Internal databases have an underscore in their name,
// which customers' names cannot have.
var reservedNames = []string{
	"all", "none", "pgbouncer", "pgherd", "postgres", "public", "replication", "samegroup", "samerole", "sameuser",
	"template0", "template1",
}

// PreviewName is what the names of previews begin with, and PreviewDigits how many base32 digits follow. They are derived from
// what others may know, and nobody else can take one.
const (
	PreviewName   = "preview-"
	PreviewDigits = 40
)

var previewPattern = regexp.MustCompile(fmt.Sprintf("^%s[a-z2-7]{%d}$", PreviewName, PreviewDigits))

// ValidateChosenName is ValidateName for a name that a customer has chosen.
func ValidateChosenName(name string) error {
	if previewPattern.MatchString(name) {
		return fault.Invalid("name", "is reserved")
	}
	return ValidateName(name)
}

// ValidateName checks the name that becomes the PostgreSQL database and its owner login (spec, "Limits").
func ValidateName(name string) error {
	switch {
	case !namePattern.MatchString(name):
		return fault.Invalid("name", "must be 3-50 lowercase letters, digits and hyphens, start with a letter and "+
			"end with a letter or digit")
	case slices.Contains(reservedNames, name):
		return fault.Invalid("name", "is reserved")
	}
	return nil
}

// ErrNameTaken is the refusal of a name that another database on the server has, or had and is not yet purged.
func ErrNameTaken() error { return fault.Invalid("name", "is taken") }

// ValidateDisplayName trims and checks a human-readable label: 1-64 characters, no control characters.
func ValidateDisplayName(s string) (string, error) { return fault.Label("displayName", s, 1, 64) }

// ParseEnvironment accepts the four labels.
func ParseEnvironment(s string) (Environment, error) {
	switch e := Environment(s); e {
	case Production, Staging, Development, Other:
		return e, nil
	default:
		return "", fault.Invalid("environment", "must be production, staging, development, other or null")
	}
}

// ParseRoleModel accepts the two models.
func ParseRoleModel(s string) (RoleModel, error) {
	return fault.OneOf("roleModel", s, Managed, SingleLogin)
}

// ParseSchedule accepts the two schedules.
func ParseSchedule(s string) (Schedule, error) {
	return fault.OneOf("scheduledBackup", s, NoSchedule, Daily)
}

// Chosen checks an optional choice; absent is used if none was made.
func Chosen[T ~string](choice *T, absent T, parse func(string) (T, error)) (T, error) {
	if choice == nil {
		return absent, nil
	}
	return parse(string(*choice))
}

// Login is one of the logins that are created with a database.
type Login string

// The logins.
const (
	OwnerLogin    Login = "owner"
	RuntimeLogin  Login = "runtime"
	ReadonlyLogin Login = "readonly"
)

// Values lists the logins of the role model that has all of them.
func (Login) Values() []Login { return Managed.Logins() }

// Logins lists the logins of a role model, the owner first.
func (m RoleModel) Logins() []Login {
	if m == SingleLogin {
		return []Login{OwnerLogin}
	}
	return []Login{OwnerLogin, RuntimeLogin, ReadonlyLogin}
}

// LoginSecretContext binds the encrypted password of a login to database, login and credential generation.
func LoginSecretContext(db id.DatabaseID, login Login, credentialGeneration int64) string {
	return "database/" + string(db) + "/login/" + string(login) + "/" + strconv.FormatInt(credentialGeneration, 10)
}

// Names are the PostgreSQL role names of one database. Holder owns the database and cannot log in. The two group roles hold the
// grants of the read-only and read-write profiles.
type Names struct {
	Owner, Runtime, Readonly      string
	Holder, ReadGroup, WriteGroup string
}

// RoleNames derives the role names of a database.
func RoleNames(db id.DatabaseID, name string) Names {
	base := "pgh_" + id.Compact(db)
	return Names{
		Owner: name, Runtime: base + "_rt", Readonly: base + "_ro",
		Holder: base + "_holder", ReadGroup: base + "_gro", WriteGroup: base + "_grw",
	}
}

// Of returns the PostgreSQL name of a login.
func (n Names) Of(l Login) string {
	switch l {
	case RuntimeLogin:
		return n.Runtime
	case ReadonlyLogin:
		return n.Readonly
	case OwnerLogin:
		return n.Owner
	}
	return ""
}
