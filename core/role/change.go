package role

import (
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
)

// Kind is what a change does. Users ask for the first two; the others are the service's own.
type Kind string

// The kinds.
const (
	Rotation   Kind = "rotate" // a new password; the old one and every connection made with it are proven dead
	Revocation Kind = "revoke" // no password at all
	Expiry     Kind = "expire" // as a revocation, because the credential's validity has ended
	Removal    Kind = "remove" // the role itself goes, unless something depends on it
)

// Kinds lists every kind.
var Kinds = []Kind{Rotation, Revocation, Expiry, Removal}

// Values lists them for the API's description.
func (Kind) Values() []Kind { return Kinds }

// Public reports whether users can ask for changes of this kind, and read them.
func (k Kind) Public() bool { return k == Rotation || k == Revocation }

// ChangeStatus is the status of a change.
type ChangeStatus string

// The statuses of a change. A change is pending until its outcome is known: it never fails merely because no answer came. An
// operator can end one of which the outcome is never going to be known.
const (
	Pending   ChangeStatus = "pending"
	Completed ChangeStatus = "completed" // final: the agent has proven it
	Refused   ChangeStatus = "refused"   // final: nothing was changed, because of dependencies or the server's refusal
)

// ChangeStatuses lists every status.
var ChangeStatuses = []ChangeStatus{Pending, Completed, Refused}

// Values lists them for the API's description.
func (ChangeStatus) Values() []ChangeStatus { return ChangeStatuses }

// Change is one change of one login. At most one of a database is pending. Exactly one of RoleID and Login is set. An ended
// change is kept for long, see package retention, so that its key can answer repeated requests.
type Change struct {
	ID         id.OperationID `db:"id"`
	DatabaseID id.DatabaseID  `db:"database_id"`
	RoleID     id.RoleID      `db:"role_id"` // of an additional role
	Login      database.Login `db:"login"`   // of a login that came with the database
	Username   string         `db:"username"`
	Kind       Kind           `db:"kind"`
	Status     ChangeStatus   `db:"status"`

	// Key is the request's key; changes that the service itself begins have keys with idempotency.InternalPrefix.
	Key idempotency.Key `db:"idempotency_key"`

	// Generation is the role-set generation: an agent refuses a command with a lower generation than the last one for the login.
	Generation int64 `db:"generation"`
	// CredentialGeneration is the generation of the new password or, if the change makes none, of the current one.
	CredentialGeneration int64 `db:"credential_generation"`

	// Verifier and Sealed hold the new password of a rotation, and ExpiresAt the end of its validity. The first two are empty once
	// the change has ended.
	Verifier  string     `db:"verifier"`
	Sealed    []byte     `db:"sealed"`
	ExpiresAt *time.Time `db:"expires_at"`
	// Revealed records that an answer has carried the owner's new password; no other answer will.
	Revealed bool `db:"revealed"`

	audit.Actor
	RequestID string     `db:"request_id"`
	CreatedAt time.Time  `db:"created_at"`
	EndedAt   *time.Time `db:"ended_at"`

	// Refusal is the last answer of the server if it was a refusal for good, and what an operator gave as the reason of the end. A
	// pending change with a refusal is stuck: a look at its login does not show what has become of it.
	Refusal string `db:"refusal"`
}

// SecretContext binds the new password of a rotation. The login will have the same context once the rotation is completed, so
// the encrypted password can be moved there unchanged.
func (c Change) SecretContext() string {
	if c.RoleID != "" {
		return SecretContext(c.DatabaseID, c.RoleID, c.CredentialGeneration)
	}
	return database.LoginSecretContext(c.DatabaseID, c.Login, c.CredentialGeneration)
}

// Open reports whether the change has not ended.
func (c Change) Open() bool { return c.Status == Pending }

// Ended returns the change in a final status, without its password.
func (c Change) Ended(s ChangeStatus, now time.Time) Change {
	c.Status, c.EndedAt, c.Verifier, c.Sealed = s, &now, "", nil
	return c
}

// Grace is how long the process that works on a change may be silent before another takes over.
const Grace = 5 * time.Second

// Proof is what the agent observed before it reported a change as done. It is recorded in the activity log.
type Proof struct {
	ClientsClosed int `json:"clientsClosed"` // of the pooler
	SessionsEnded int `json:"sessionsEnded"` // of PostgreSQL
	// NoneLeft: no client and no session of the old credential is left, and none can appear any more.
	NoneLeft bool `json:"noneLeft"`
	// OldRefused: a log-in with the old password was refused, directly and through the pooler.
	OldRefused bool `json:"oldRefused"`
	// NewAccepted: a log-in with the new password works through the pooler; or directly, where others hold all its connections.
	// False where there is none.
	NewAccepted bool `json:"newAccepted"`
	// ConnectMissing: the new password is accepted, but the owner has withdrawn CONNECT.
	ConnectMissing bool `json:"connectMissing"`
	// Lapsed: the new password's validity had ended by the server's clock before a log-in with it could be tried. NewAccepted is
	// false then.
	Lapsed bool `json:"lapsed"`
	// Closed: the service keeps all customers out of the database, so no log-in with the new password could be tried. What is
	// stored of it was compared instead. NewAccepted is false then.
	Closed bool `json:"closed"`
	// Absent: the server has no such role, so nobody can log in as it.
	Absent bool `json:"absent"`
}
