package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// RoleAgent makes, opens, changes and removes logins of a database that stands. Every command carries the role-set generation:
// a lower one than the last of the same login is ReasonStale. The same command again has the same outcome.
type RoleAgent interface {
	// PrepareRole makes the role without log-in, gives it CONNECT in the owner's name, and its limit in the pooler.
	// ReasonNameTaken: the server has a role of that name that is not ours.
	PrepareRole(ctx context.Context, f Fence, spec RoleSpec) error
	// AdmitRole gives a prepared role the grants of its access profile and its password, opens it, and proves a log-in with it
	// directly and through the pooler. ReasonConnectRequired: the owner has withdrawn CONNECT; nothing was opened.
	// ReasonDatabaseClosed: the database is stopped. ReasonNotFound: the role was not prepared. ReasonFailed: it does not get in;
	// with a ValidUntil that is past, it never does.
	AdmitRole(ctx context.Context, f Fence, spec RoleSpec) error
	// ChangeLogin rotates the password of a login, or shuts it (Revocation, Expiry), and returns what was proven. For a login
	// that the server does not have, Rotation is ReasonNotFound and changes nothing, and shutting it proves that it is absent.
	// A Rotation whose ValidUntil is past by the server's clock is done without a log-in with the new password: role.Proof.Lapsed.
	// ReasonDatabaseClosed: a rotation while the database is stopped.
	ChangeLogin(ctx context.Context, f Fence, spec LoginChange) (role.Proof, error)
	// RemoveRole takes the platform's grants back and drops the role, unless something of its account's depends on it: then it
	// is shut, stays, and the dependencies are returned. What depends on it in databases of other accounts neither counts
	// nor is told. A role that the server does not have is removed already.
	RemoveRole(ctx context.Context, f Fence, spec RoleRemoval) (role.Dependencies, error)
	// InspectLogin compares a login's password on the server with a verifier.
	InspectLogin(ctx context.Context, db id.DatabaseID, username, verifier string) (LoginCondition, error)
}

// RoleSpec is an additional role as it shall be. Verifier, ValidUntil and Password are for AdmitRole; Password proves the log-in
// and is never stored by an agent.
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

// LoginChange is a change of a login: an additional role, or one that came with the database.
type LoginChange struct {
	DatabaseID id.DatabaseID
	Username   string
	Generation int64
	Kind       role.Kind // Rotation, Revocation or Expiry
	// CredentialGeneration, Verifier and ValidUntil are what a rotation sets.
	CredentialGeneration int64
	Verifier             string
	ValidUntil           *time.Time
	// NewPassword and OldPassword prove, by log-ins, that the one works and the other no more. Never stored by an agent.
	// OldPassword may be empty: then there is none.
	NewPassword, OldPassword string
}

// RoleRemoval is the removal of an additional role.
type RoleRemoval struct {
	DatabaseID id.DatabaseID
	Username   string
	Generation int64
	// AccountDatabases are the other databases of the account: what depends on the role there counts.
	AccountDatabases []id.DatabaseID
}

// LoginCondition is how a login stands on the server.
type LoginCondition string

// The conditions.
const (
	LoginInForce LoginCondition = "in_force" // may log in with the password that the verifier is of
	LoginDrifted LoginCondition = "drifted"  // has another password, or none
	LoginShut    LoginCondition = "shut"     // has the password, but may not log in
	LoginAbsent  LoginCondition = "absent"   // the server has no such login of ours
)
