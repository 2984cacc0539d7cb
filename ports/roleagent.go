package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// RoleAgent creates, opens, changes and removes logins of an existing database. Every command carries the role-set generation;
// a generation lower than the last one for the same login is ReasonStale. A repeated command has the same outcome.
type RoleAgent interface {
	// PrepareRole creates the role without permission to log in, grants it CONNECT in the owner's name, and sets its limit in the
	// pooler. ReasonNameTaken: the server has a role of that name that this service did not make.
	PrepareRole(ctx context.Context, f Fence, spec RoleSpec) error
	// AdmitRole gives a prepared role its password and the grants of its access profile, lets it log in, and proves a log-in
	// through the pooler. ReasonConnectRequired: the owner has revoked CONNECT; the role cannot log in.
	// ReasonDatabaseClosed: the database is stopped. ReasonNotFound: the role was not prepared. ReasonFailed: the log-in does not
	// work, and never will if ValidUntil has passed.
	AdmitRole(ctx context.Context, f Fence, spec RoleSpec) error
	// ChangeLogin rotates the password of a login, or shuts the login out (Revocation, Expiry), and returns what was proven. If
	// the server has no such login, Rotation is ReasonNotFound, and shutting it out succeeds with the proof that it is absent. If
	// ValidUntil of a Rotation has passed by the server's clock, the rotation is done without trying the new password:
	// role.Proof.Lapsed. ReasonDatabaseClosed: a rotation while the database is stopped.
	ChangeLogin(ctx context.Context, f Fence, spec LoginChange) (role.Proof, error)
	// RemoveRole revokes the platform's grants and drops the role, unless something in the account's databases depends on it: then
	// the role is shut out and kept, and the dependencies are returned. Dependencies in databases of other accounts neither count
	// nor are returned. It succeeds if the server has no such role.
	RemoveRole(ctx context.Context, f Fence, spec RoleRemoval) (role.Dependencies, error)
	// InspectLogin compares a login's password on the server with a verifier.
	InspectLogin(ctx context.Context, db id.DatabaseID, username, verifier string) (LoginCondition, error)
}

// RoleSpec is the desired state of an additional role. Verifier, ValidUntil and Password are for AdmitRole; Password is used to
// prove the log-in, and an agent never stores it.
type RoleSpec struct {
	DatabaseID      id.DatabaseID
	Username        string
	Generation      int64
	AccessProfile   role.AccessProfile
	ConnectionLimit int
	Verifier        string
	ValidUntil      *time.Time
	Password        string
}

// LoginChange is a change of a login: an additional role, or a login that was created with the database.
type LoginChange struct {
	DatabaseID id.DatabaseID
	Username   string
	Generation int64
	Kind       role.Kind // Rotation, Revocation or Expiry
	// CredentialGeneration, Verifier and ValidUntil are what a rotation sets.
	CredentialGeneration int64
	Verifier             string
	ValidUntil           *time.Time
	// NewPassword and OldPassword are used to prove that the first works and the second no longer does; an agent never stores
	// them. OldPassword is empty if there is none.
	NewPassword, OldPassword string
}

// RoleRemoval is the removal of an additional role.
type RoleRemoval struct {
	DatabaseID id.DatabaseID
	Username   string
	Generation int64
	// AccountDatabases are the account's other databases, where dependencies count too.
	AccountDatabases []id.DatabaseID
}

// LoginCondition is the state of a login on the server.
type LoginCondition string

// The conditions.
const (
	LoginInForce LoginCondition = "in_force" // can log in, with the password of the verifier
	LoginDrifted LoginCondition = "drifted"  // has another password, or none
	LoginShut    LoginCondition = "shut"     // has the password, but may not log in
	LoginAbsent  LoginCondition = "absent"   // the server has no such login made by this service
)
