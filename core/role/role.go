// Package role holds the additional logins of databases: their machine, the rules of their creation, the changes of their
// passwords, and what keeps one from being removed (spec, sections "Additional role (managed roles)", "Role change", "Role
// dependency", "Managed additional roles", "Additional roles for existing databases"). Managed databases and those with a single
// login differ in a Model. A refusal here is MANAGED_ROLE_CONFLICT; Model.Refusal makes it that of the model.
package role

import (
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
)

// Profile is the constant that the spec calls the profile of an additional role.
const Profile = "custom"

// AccessProfile determines what a role may do with the owner's tables, present and future. No profile grants CREATE or
// TEMPORARY.
type AccessProfile string

// The access profiles. All of them include the right to connect.
const (
	ReadOnly  AccessProfile = "read_only"  // SELECT
	ReadWrite AccessProfile = "read_write" // SELECT, INSERT, UPDATE, DELETE; USAGE and SELECT on sequences
	Custom    AccessProfile = "custom"     // nothing but what the owner grants
)

// Values lists the profiles.
func (AccessProfile) Values() []AccessProfile { return []AccessProfile{ReadOnly, ReadWrite, Custom} }

// ParseAccessProfile accepts the three profiles; anything else is VALIDATION_ERROR on "accessProfile".
func ParseAccessProfile(s string) (AccessProfile, error) {
	return fault.OneOf("accessProfile", s, ReadOnly, ReadWrite, Custom)
}

// Role is an additional login of one database. The record of a removed role is kept, without a password, as long as its
// database: neither its ordinal nor its idempotency key is used again.
type Role struct {
	ID              id.RoleID     `db:"id"`
	DatabaseID      id.DatabaseID `db:"database_id"`
	Ordinal         int           `db:"ordinal"` // 1, 2, 3 ... of its database
	Username        string        `db:"username"`
	DisplayName     string        `db:"display_name"`
	AccessProfile   AccessProfile `db:"access_profile"`
	ConnectionLimit int           `db:"connection_limit"`
	Status          Status        `db:"status"`
	CreatedAt       time.Time     `db:"created_at"`

	// Key and Fingerprint are those of the request that created the role.
	Key         idempotency.Key         `db:"idempotency_key"`
	Fingerprint idempotency.Fingerprint `db:"fingerprint"`

	// SetupID identifies the creation of the role to the agent, and Generation is the role-set generation of its commands.
	SetupID    id.OperationID `db:"setup_id"`
	Generation int64          `db:"generation"`

	// ChangeID is the change that has not ended yet; empty where there is none.
	ChangeID id.OperationID `db:"change_id"`

	// CredentialGeneration grows by one with every new password. CredentialExpiresAt is when the current password stops being
	// valid; nil means never.
	CredentialGeneration int64      `db:"credential_generation"`
	CredentialExpiresAt  *time.Time `db:"credential_expires_at"`

	// Verifier is what PostgreSQL stores; Sealed is the password, encrypted and bound to SecretContext. Both are empty once the
	// role is revoked or removed.
	Verifier string `db:"verifier"`
	Sealed   []byte `db:"sealed"`
}

// SecretContext binds an encrypted password to database, role and credential generation.
func SecretContext(db id.DatabaseID, role id.RoleID, credentialGeneration int64) string {
	return "database/" + string(db) + "/role/" + string(role) + "/" + strconv.FormatInt(credentialGeneration, 10)
}

// SecretContext binds the role's current password.
func (r Role) SecretContext() string {
	return SecretContext(r.DatabaseID, r.ID, r.CredentialGeneration)
}

// CredentialExpired reports whether the password's validity has ended, so that it can no longer be revealed or rotated, even if
// the role's status does not show that yet.
func (r Role) CredentialExpired(now time.Time) bool {
	return r.CredentialExpiresAt != nil && !now.Before(*r.CredentialExpiresAt)
}

// GrantConnect is the SQL by which the owner of its database lets the role connect.
func (r Role) GrantConnect(databaseName string) string {
	quoted := func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
	return "GRANT CONNECT ON DATABASE " + quoted(databaseName) + " TO " + quoted(r.Username) + ";"
}

// Forgotten returns the role without its password.
func (r Role) Forgotten() Role {
	r.Verifier, r.Sealed = "", nil
	return r
}

// ErrNotFound is the refusal for a role that does not exist or was removed.
func ErrNotFound() error { return fault.New(fault.RoleNotFound, "no such role on this database") }
