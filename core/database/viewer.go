package database

import (
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
)

// Viewer is a caller as databases see it: it determines which databases are visible to a key or a person. A worker has neither,
// and no user.
type Viewer struct {
	AccountID id.AccountID
	UserID    id.UserID
	KeyID     id.KeyID
	SessionID id.SessionID // of a person; then there is no key, and the scope means nothing
	Scope     account.Scope
	// NamespaceID is that of a CI key, which sees the previews of its namespace alone, whatever its scope; empty for others.
	NamespaceID id.NamespaceID
	// Deleted says that databases that are deleted or being purged are also seen.
	Deleted bool
}

// Selects reports whether the viewer sees only databases that its key is bound to.
func (v Viewer) Selects() bool {
	return !v.IsPerson() && v.NamespaceID == "" && v.Scope != account.FullAccount
}

// IsPerson reports whether the viewer is a person with a session.
func (v Viewer) IsPerson() bool { return v.SessionID != "" }

// Ties are what is stored between a viewer and one database.
type Ties struct {
	// KeyValid says that the viewer's key is stored and not revoked. It means nothing for a viewer without a key.
	KeyValid bool `db:"key_valid"`
	// SessionOpen says that the viewer's session is stored as open. It means nothing for a viewer without a session.
	SessionOpen bool `db:"session_open"`
	// Bound says that the viewer's key is bound to the database, and Member is the role of the viewer's user there; empty where the
	// user is no member. Bound may be left out for a viewer that does not select, and Member too where that is no person.
	Bound  bool             `db:"bound"`
	Member account.Standing `db:"member"`
	// OwnSuspendedFor is why the viewer's account is suspended; empty unless it is. It may be left out for a viewer who sees
	// databases of that account alone, of which the records have it.
	OwnSuspendedFor string `db:"own_suspended_for"`
}

// Listed is a database in a list of those that a viewer sees.
type Listed struct {
	Record
	// Standing is what the viewer is to it.
	Standing account.Standing `db:"standing"`
	// VerifiedBackupAt is when its newest verified backup was made; nil where it has none, or the listing does not ask.
	VerifiedBackupAt *time.Time `db:"verified_backup_at"`
}

// Tied is a database with what is stored between it and a viewer.
type Tied struct {
	Record
	Ties
}

// StandingOn returns what a viewer is to a database, and whether the viewer sees it at all. A preview CI key sees the previews of
// its namespace, and a full-account key its account's databases. A selected-database key sees the databases that it is bound to,
// if they belong to its account or its user is a member, and while they are not being deleted. A person sees the databases of the
// own account, and those of others as whose member, while they are not being deleted. A key that is revoked or gone, or a session
// that has ended, sees nothing; a viewer without either needs none.
//
// The list of databases has the same rule in SQL; the conformance suite of the store holds the two together.
func (v Viewer) StandingOn(r Record, t Ties) (s account.Standing, sees bool) {
	owned := r.AccountID == v.AccountID
	if s = t.Member; owned {
		s = account.Owner
	}
	switch {
	case v.KeyID != "" && !t.KeyValid:
		return s, false
	case v.IsPerson() && !t.SessionOpen:
		return s, false
	case v.IsPerson() && !owned:
		return s, s != "" && r.Status != Deleting && !r.Status.Gone()
	case v.Selects():
		return s, t.Bound && s != "" && r.Status != Deleting && !r.Status.Gone()
	case v.NamespaceID != "" && v.NamespaceID != r.NamespaceID:
		return s, false
	}
	return s, owned && (v.Deleted || !r.Status.Gone())
}

// Served returns ACCOUNT_SUSPENDED where a database that the viewer sees belongs to a suspended account, or the viewer acts for
// one. A viewer without a key or a session is the service itself, which goes on.
func (v Viewer) Served(r Record, t Ties) error {
	switch {
	case v.KeyID == "" && !v.IsPerson():
		return nil
	case r.AccountID == v.AccountID:
		return r.Served()
	case t.OwnSuspendedFor != "":
		return account.ErrSuspended(t.OwnSuspendedFor)
	case r.Suspended():
		return account.ErrOwnerSuspended()
	}
	return nil
}
