package controlplane

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// ManagedLogins shows and changes the passwords of the logins that came with a database: owner, runtime and readonly.
type ManagedLogins struct{ *base }

// ManagedLogin is such a login. Its connections are bounded by the database's cap, and by nothing else.
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

// LoginRotation is the change of a login's password. Password is that of the owner, in the one answer that carries it.
type LoginRotation struct {
	role.Change
	Password string
}

func managedLogin(record database.Record, l ports.LoginSecret) ManagedLogin {
	return ManagedLogin{
		Login: l.Login, Username: l.Username, ConnectionLimit: record.ConnectionCap, CredentialGeneration: l.Generation,
	}
}

// List returns the logins, the owner first.
func (m *ManagedLogins) List(ctx context.Context, reached Reached) ([]ManagedLogin, error) {
	if err := reached.Permit(account.See); err != nil {
		return nil, err
	}
	var list []ports.LoginSecret
	err := m.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		list, err = tx.Logins().List(ctx, reached.record.ID)
		return err
	})
	logins := make([]ManagedLogin, 0, len(list))
	for _, l := range list {
		logins = append(logins, managedLogin(reached.record, l))
	}
	return logins, err
}

// Reveal returns the password of runtime or readonly after the server has said that it is in force, and writes that into the
// activity log first. FORBIDDEN. ROLE_NOT_FOUND: the owner's, or a login that the database does not have. MANAGED_ROLE_CONFLICT:
// a change of it is unfinished, or its password on the server is another one. AGENT_ERROR: the server could not be asked.
func (m *ManagedLogins) Reveal(ctx context.Context, reached Reached, l database.Login) (RevealedLogin, error) {
	if err := reached.Permit(account.Configure); err != nil {
		return RevealedLogin{}, err
	}
	if l == database.OwnerLogin {
		return RevealedLogin{}, role.ErrNotFound()
	}
	var stored ports.LoginSecret
	err := m.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		stored, err = settledLogin(ctx, tx, reached.record.ID, l)
		return err
	})
	if err != nil {
		return RevealedLogin{}, err
	}
	if err := m.inForce(ctx, reached.record, stored.Username, stored.Verifier); err != nil {
		return RevealedLogin{}, err
	}
	password, err := m.unseal(sealedPassword{stored.Sealed, stored.Context()})
	if err != nil {
		return RevealedLogin{}, err
	}
	err = m.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		record, err := tx.Databases().Lock(ctx, reached.record.ID)
		if err != nil {
			return notFound(err, errDatabaseNotFound())
		}
		now, err := settledLogin(ctx, tx, record.ID, l)
		if err != nil {
			return err
		}
		if now.Generation != stored.Generation {
			return errChangedMeanwhile()
		}
		details := loginDetails(l, now.Username, now.Generation)
		return m.audit(ctx, tx, record, reached.caller.Actor(), audit.LoginRevealed, details)
	})
	if err != nil {
		return RevealedLogin{}, err
	}
	return RevealedLogin{ManagedLogin: managedLogin(reached.record, stored), Password: password}, nil
}

// loginOf returns a login; ROLE_NOT_FOUND.
func loginOf(ctx context.Context, tx ports.Tx, db id.DatabaseID, l database.Login) (ports.LoginSecret, error) {
	stored, err := tx.Logins().Get(ctx, db, l)
	return stored, notFound(err, role.ErrNotFound())
}

// settledLogin is loginOf for what has to wait until the login's change has ended.
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
	ctx context.Context, reached Reached, l database.Login, key idempotency.Key,
) (LoginRotation, error) {
	if err := reached.Permit(account.Configure); err != nil {
		return LoginRotation{}, err
	}
	key, err := idempotency.Parse(string(key))
	if err != nil {
		return LoginRotation{}, err
	}
	w := m.userWish(reached, role.Rotation, key)
	var job changeJob
	var known bool
	err = m.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		s, err := scene(ctx, tx, reached.record.ID)
		if err != nil {
			return err
		}
		stored, err := loginOf(ctx, tx, s.Database.ID, l)
		if err != nil {
			return err
		}
		var c role.Change
		c, known, err = changeByKey(ctx, tx, role.Change{DatabaseID: s.Database.ID, Login: l, Kind: role.Rotation, Key: key})
		if err != nil {
			return err
		}
		if known {
			job, err = jobOf(ctx, tx, s.Database, c)
			return err
		}
		if err := s.AdmitsLoginChange(); err != nil {
			return err
		}
		job, err = m.changeManaged(ctx, tx, s.Database, stored, w)
		return err
	})
	if err != nil {
		return LoginRotation{}, err
	}
	c, err := m.answerChange(ctx, job, !known)
	if err != nil || l != database.OwnerLogin || c.Open() || c.Revealed {
		return LoginRotation{Change: c}, err
	}
	return m.handOver(ctx, reached, c)
}

// handOver gives out the owner's new password and writes down, before it does so, that this answer carries it.
func (m *ManagedLogins) handOver(ctx context.Context, reached Reached, c role.Change) (LoginRotation, error) {
	ctx, cancel := m.settling(ctx)
	defer cancel()
	var current ports.LoginSecret
	mine := false
	err := m.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		record, stored, err := lockChange(ctx, tx, c.DatabaseID, c.ID)
		if err != nil {
			return err
		}
		if current, err = loginOf(ctx, tx, record.ID, c.Login); err != nil {
			return err
		}
		if mine = !stored.Revealed && current.Generation == stored.CredentialGeneration; !mine {
			return nil
		}
		stored.Revealed = true
		if err := tx.RoleChanges().Save(ctx, stored); err != nil {
			return err
		}
		details := loginDetails(c.Login, c.Username, c.CredentialGeneration)
		return m.audit(ctx, tx, record, reached.caller.Actor(), audit.LoginRevealed, details)
	})
	if err != nil || !mine {
		return LoginRotation{Change: c}, err
	}
	c.Revealed = true
	password, err := m.unseal(sealedPassword{current.Sealed, current.Context()})
	return LoginRotation{Change: c, Password: password}, err
}
