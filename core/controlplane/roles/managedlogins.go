package roles

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// ManagedLogins shows and changes the passwords of the logins that were created with a database: owner, runtime and readonly.
type ManagedLogins struct{ *driver }

// NewManagedLogins makes the use cases.
func NewManagedLogins(p *base.Base) *ManagedLogins { return &ManagedLogins{&driver{p}} }

// ManagedLogin is such a login. Only the database's connection cap bounds its connections.
type ManagedLogin struct {
	Login                database.Login
	Username             string
	ConnectionLimit      int // 0: none
	CredentialGeneration int64
}

// RevealedLogin is a login with its password.
type RevealedLogin struct {
	ManagedLogin
	Password string
}

// LoginRotation is the change of a login's password. Password is the owner's new password, in the one answer that carries it.
type LoginRotation struct {
	role.Change
	Password string
}

func managedLogin(record database.Record, l ports.LoginSecret) ManagedLogin {
	return ManagedLogin{
		Login: l.Login, Username: l.Username, ConnectionLimit: record.ConnectionCap, CredentialGeneration: l.Generation,
	}
}

// loginDetails describe such a login in the activity log.
func loginDetails(l database.Login, username string, credentialGeneration int64) audit.Details {
	return audit.Details{
		"login": string(l), "username": username, "credentialGeneration": strconv.FormatInt(credentialGeneration, 10),
	}
}

// List returns the logins, the owner first.
func (m *ManagedLogins) List(ctx context.Context, reached access.Reached) ([]ManagedLogin, error) {
	if err := reached.Permit(account.See); err != nil {
		return nil, err
	}
	list, err := ports.Read(ctx, m.base.Store, func(ctx context.Context, tx ports.Tx) ([]ports.LoginSecret, error) {
		return tx.Logins().List(ctx, reached.Record().ID)
	})
	logins := make([]ManagedLogin, 0, len(list))
	for _, l := range list {
		logins = append(logins, managedLogin(reached.Record(), l))
	}
	return logins, err
}

// Reveal returns the password of runtime or readonly, after the server has confirmed that it is in force and an activity entry
// is stored. FORBIDDEN. ROLE_NOT_FOUND: the owner's, or a login that the database does not have. MANAGED_ROLE_CONFLICT: a
// change of it is unfinished, or its password on the server is another one. AGENT_ERROR: the server could not be asked.
func (m *ManagedLogins) Reveal(ctx context.Context, reached access.Reached, l database.Login) (RevealedLogin, error) {
	if err := reached.PermitRecent(m.base.Clock, account.Configure); err != nil {
		return RevealedLogin{}, err
	}
	if l == database.OwnerLogin || !known(l) {
		return RevealedLogin{}, role.ErrNotFound()
	}
	var stored ports.LoginSecret
	_, password, err := m.reveal(ctx, reached, audit.LoginRevealed, func(ctx context.Context, tx ports.Tx) (secret, error) {
		var err error
		stored, err = settledLogin(ctx, tx, reached.Record().ID, l)
		return secret{loginOfDatabase(stored), loginDetails(l, stored.Username, stored.Generation)}, err
	})
	if err != nil {
		return RevealedLogin{}, err
	}
	return RevealedLogin{ManagedLogin: managedLogin(reached.Record(), stored), Password: password}, nil
}

// known reports whether databases have such a login.
func known(l database.Login) bool { return slices.Contains(database.Managed.Logins(), l) }

// loginOf returns a login; ROLE_NOT_FOUND.
func loginOf(ctx context.Context, tx ports.Tx, db id.DatabaseID, l database.Login) (ports.LoginSecret, error) {
	stored, err := tx.Logins().Get(ctx, db, l)
	return stored, base.NotFound(err, role.ErrNotFound())
}

// settledLogin is loginOf for uses that must wait until the login's change has ended.
func settledLogin(ctx context.Context, tx ports.Tx, db id.DatabaseID, l database.Login) (ports.LoginSecret, error) {
	stored, err := loginOf(ctx, tx, db, l)
	if err != nil {
		return stored, err
	}
	c, err := pendingChange(ctx, tx, db)
	if err == nil && c != nil && c.Login == l {
		err = errUnfinished()
	}
	return stored, err
}

// Rotate changes the password of a login, as Roles.Change does. The owner's new password is returned once, by the first answer
// that finds the change completed; the others' can be revealed. FORBIDDEN, ROLE_NOT_FOUND. MANAGED_ROLE_CONFLICT as for
// Roles.Change.
func (m *ManagedLogins) Rotate(
	ctx context.Context, reached access.Reached, l database.Login, key idempotency.Key,
) (LoginRotation, error) {
	if err := reached.PermitRecent(m.base.Clock, account.Configure); err != nil {
		return LoginRotation{}, err
	}
	if !known(l) {
		return LoginRotation{}, role.ErrNotFound()
	}
	var stored ports.LoginSecret
	find := func(ctx context.Context, tx ports.Tx) (err error) {
		stored, err = loginOf(ctx, tx, reached.Record().ID, l)
		return err
	}
	begin := func(ctx context.Context, tx ports.Tx, s role.Scene, want intent) (changeJob, error) {
		if err := s.AdmitsLoginChange(); err != nil {
			return changeJob{}, err
		}
		want.Login = l
		return m.addChange(ctx, tx, s.Database, want, loginOfDatabase(stored))
	}
	c, err := m.request(ctx, reached, role.Change{Login: l, Kind: role.Rotation, Key: key}, find, begin)
	if err != nil || l != database.OwnerLogin || c.Open() || c.Revealed {
		return LoginRotation{Change: c}, err
	}
	return m.handOver(ctx, reached.Caller().Actor(), nil, c)
}

// updateChange runs fn in a transaction that has locked the database of a change.
func (d *driver) updateChange(
	ctx context.Context, of role.Change, fn func(ctx context.Context, tx ports.Tx, record database.Record, c role.Change) error,
) error {
	return d.base.UpdateDatabase(ctx, of.DatabaseID, func(ctx context.Context, tx ports.Tx, record database.Record) error {
		c, err := tx.RoleChanges().Get(ctx, of.DatabaseID, of.ID)
		if err != nil {
			return err
		}
		return fn(ctx, tx, record, c)
	})
}

// handOver returns the owner's new password, after it has recorded that this answer carries it, and what more there is to say. If
// the password cannot be decrypted, nothing is recorded, and the request can be repeated.
func (d *driver) handOver(ctx context.Context, by audit.Actor, more audit.Details, c role.Change) (LoginRotation, error) {
	ctx, cancel := d.base.Settling(ctx)
	defer cancel()
	var password string
	err := d.updateChange(ctx, c, func(ctx context.Context, tx ports.Tx, record database.Record, stored role.Change) error {
		password = ""
		current, err := loginOf(ctx, tx, record.ID, c.Login)
		if err != nil || stored.Revealed || current.Generation != stored.CredentialGeneration {
			return err
		}
		if password, err = d.unseal(current.Sealed, current.Context()); err != nil {
			return err
		}
		stored.Revealed = true
		if err := tx.RoleChanges().Save(ctx, stored); err != nil {
			return err
		}
		details := loginDetails(c.Login, c.Username, c.CredentialGeneration)
		details["operationId"] = string(c.ID)
		maps.Copy(details, more)
		return d.base.Audit(ctx, tx, record, by, audit.LoginRevealed, details)
	})
	if err != nil {
		return LoginRotation{}, err
	}
	c.Revealed = password != ""
	return LoginRotation{Change: c, Password: password}, nil
}
