package fakeagent

import (
	"context"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// loginCommand carries out one command on a login of a database that stands. What it returns is stored and returned again.
func loginCommand[T any](
	ctx context.Context, s *Server, c Call, step string, generation int64, payload any, do func(*databaseState) (T, error),
) (result T, err error) {
	key := commandKey{kind: loginKind, step: step, resource: string(c.Database) + "/" + c.Username, generation: generation}
	err = s.newerRoute(ctx, c, func() (err error) {
		result, err = admittedLogin(s, c, key, payload, do)
		if d := s.databases[c.Database]; err != nil && d != nil {
			err = s.ledger.withGenerations(err, key, d.logins[c.Username])
		}
		return err
	})
	if err != nil {
		var nothing T
		return nothing, err
	}
	return result, nil
}

func admittedLogin[T any](
	s *Server, c Call, key commandKey, payload any, do func(*databaseState) (T, error),
) (result T, err error) {
	command, err := s.ledger.admit(c.Fence, key, payload)
	if err != nil {
		return result, err
	}
	if command.done {
		return command.result.(T), nil
	}
	d, err := s.standing(c.Database)
	if err != nil {
		return result, err
	}
	if result, err = do(d); err == nil {
		s.ledger.conclude(key, command, result)
	}
	return result, err
}

// PrepareRole implements ports.RoleAgent.
func (a agent) PrepareRole(ctx context.Context, f ports.Fence, spec ports.RoleSpec) error {
	payload := ports.RoleSpec{
		DatabaseID: spec.DatabaseID, Username: spec.Username, AccessProfile: spec.AccessProfile, ConnectionLimit: spec.ConnectionLimit,
	}
	call := Call{Method: "PrepareRole", Fence: f, Database: spec.DatabaseID, Username: spec.Username}
	_, err := loginCommand(ctx, a.s, call, "prepared", spec.Generation, payload, func(d *databaseState) (struct{}, error) {
		l, found := d.logins[spec.Username]
		switch {
		case d.spec.RoleModel != database.Managed:
			return struct{}{}, refuse(ports.ReasonInvalid, "the database has no managed roles")
		case found && (!l.additional || l.madeBy != f.OperationID), !found && a.s.taken(spec.Username):
			return struct{}{}, refuse(ports.ReasonNameTaken, "the server has a role %s", spec.Username)
		case !found:
			l = &login{additional: true, connect: true, madeBy: f.OperationID}
			d.logins[spec.Username] = l
		}
		l.profile, l.limit = spec.AccessProfile, spec.ConnectionLimit
		return struct{}{}, nil
	})
	return err
}

// AdmitRole implements ports.RoleAgent.
func (a agent) AdmitRole(ctx context.Context, f ports.Fence, spec ports.RoleSpec) error {
	payload := spec
	payload.Password, payload.ValidUntil = "", sameTime(spec.ValidUntil)
	call := Call{Method: "AdmitRole", Fence: f, Database: spec.DatabaseID, Username: spec.Username}
	_, err := loginCommand(ctx, a.s, call, "open", spec.Generation, payload, func(d *databaseState) (struct{}, error) {
		l, found := d.logins[spec.Username]
		switch {
		case !found:
			return struct{}{}, refuse(ports.ReasonNotFound, "the server has no role %s", spec.Username)
		case !d.open:
			return struct{}{}, refuse(ports.ReasonDatabaseClosed, "the database is stopped")
		case !l.connect:
			return struct{}{}, refuse(ports.ReasonConnectRequired, "the owner has withdrawn CONNECT from %s", spec.Username)
		case !credential.Matches(spec.Verifier, spec.Password), a.s.past(spec.ValidUntil):
			return struct{}{}, refuse(ports.ReasonFailed, "the role could not log in")
		}
		l.profile, l.limit, l.verifier, l.open = spec.AccessProfile, spec.ConnectionLimit, spec.Verifier, true
		return struct{}{}, nil
	})
	return err
}

// ChangeLogin implements ports.RoleAgent.
func (a agent) ChangeLogin(ctx context.Context, f ports.Fence, spec ports.LoginChange) (role.Proof, error) {
	payload := spec
	payload.NewPassword, payload.OldPassword, payload.ValidUntil = "", "", sameTime(spec.ValidUntil)
	call := Call{Method: "ChangeLogin", Fence: f, Database: spec.DatabaseID, Username: spec.Username, Kind: spec.Kind}
	return loginCommand(ctx, a.s, call, string(spec.Kind), spec.Generation, payload, func(d *databaseState) (role.Proof, error) {
		switch spec.Kind {
		case role.Rotation:
			return d.rotate(spec, a.s.past(spec.ValidUntil))
		case role.Revocation, role.Expiry:
			return d.shut(spec)
		case role.Removal:
		}
		return role.Proof{}, refuse(ports.ReasonInvalid, "no change of a login: %s", spec.Kind)
	})
}

// rotate sets a new password. One whose validity is over already lets nobody in.
func (d *databaseState) rotate(spec ports.LoginChange, lapsed bool) (role.Proof, error) {
	l, found := d.logins[spec.Username]
	switch {
	case !found:
		return role.Proof{}, refuse(ports.ReasonNotFound, "the server has no login %s", spec.Username)
	case !d.open:
		return role.Proof{}, refuse(ports.ReasonDatabaseClosed, "the database is stopped")
	case spec.CredentialGeneration < l.credential:
		return role.Proof{}, refuse(ports.ReasonStale, "a newer password is in force")
	case !credential.Matches(spec.Verifier, spec.NewPassword):
		return role.Proof{}, refuse(ports.ReasonFailed, "the new password does not get in")
	case spec.OldPassword == spec.NewPassword:
		return role.Proof{}, refuse(ports.ReasonFailed, "the old password still gets in")
	case l.obstructed:
		l.open = false
		return role.Proof{}, errObstructed
	}
	l.verifier, l.credential, l.open, l.lapsed = spec.Verifier, spec.CredentialGeneration, true, lapsed
	proof := d.proof(spec)
	proof.NewAccepted, proof.ConnectMissing, proof.Lapsed = !lapsed, !lapsed && !l.connect, lapsed
	return proof, nil
}

func (d *databaseState) shut(spec ports.LoginChange) (role.Proof, error) {
	l, found := d.logins[spec.Username]
	switch {
	case !found:
		proof := d.proof(spec)
		proof.Absent = true
		return proof, nil
	case !l.additional:
		return role.Proof{}, refuse(ports.ReasonInvalid, "%s came with the database", spec.Username)
	}
	l.open = false
	if l.obstructed {
		return role.Proof{}, errObstructed
	}
	if spec.Kind == role.Revocation {
		l.verifier = ""
	}
	return d.proof(spec), nil
}

var errObstructed = refuse(ports.ReasonFailed, "PostgreSQL refused (SQLSTATE 42501)")

// proof ends the sessions of a login whose old password is dead, and says so.
func (d *databaseState) proof(spec ports.LoginChange) role.Proof {
	ended := d.disconnect(spec.Username)
	return role.Proof{
		ClientsClosed: ended, SessionsEnded: ended, NoneLeft: true, OldRefused: spec.OldPassword != "",
	}
}

// RemoveRole implements ports.RoleAgent.
func (a agent) RemoveRole(ctx context.Context, f ports.Fence, spec ports.RoleRemoval) (role.Dependencies, error) {
	payload := spec
	payload.AccountDatabases = slices.Compact(slices.Sorted(slices.Values(spec.AccountDatabases)))
	call := Call{Method: "RemoveRole", Fence: f, Database: spec.DatabaseID, Username: spec.Username, Kind: role.Removal}
	return loginCommand(ctx, a.s, call, string(role.Removal), spec.Generation, payload,
		func(d *databaseState) (role.Dependencies, error) {
			l, standing := d.logins[spec.Username]
			switch {
			case !standing:
				return role.Dependencies{}, nil
			case !l.additional:
				return role.Dependencies{}, refuse(ports.ReasonInvalid, "%s came with the database", spec.Username)
			case l.obstructed:
				return role.Dependencies{}, errObstructed
			}
			d.disconnect(spec.Username)
			dependencies := found(l.dependents, spec.DatabaseID, spec.AccountDatabases)
			if dependencies.Any() {
				l.open, l.verifier = false, ""
				return dependencies, nil
			}
			delete(d.logins, spec.Username)
			return role.Dependencies{}, nil
		})
}

// InspectLogin implements ports.RoleAgent.
func (a agent) InspectLogin(
	ctx context.Context, db id.DatabaseID, username, verifier string,
) (condition ports.LoginCondition, err error) {
	err = a.s.newerRoute(ctx, Call{Method: "InspectLogin", Database: db, Username: username}, func() error {
		d, err := a.s.standing(db)
		if err == nil {
			condition = d.condition(username, verifier)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return condition, nil
}

func (d *databaseState) condition(username, verifier string) ports.LoginCondition {
	l, found := d.logins[username]
	switch {
	case !found:
		return ports.LoginAbsent
	case l.verifier == "" || l.verifier != verifier:
		return ports.LoginDrifted
	case !l.open || l.lapsed || !d.open:
		return ports.LoginShut
	}
	return ports.LoginInForce
}

// past reports whether a validity is over. The fake asks its clock for nothing else about a password.
func (s *Server) past(until *time.Time) bool { return until != nil && !s.clock.Now().Before(*until) }

// sameTime makes a time the same text each time a command comes.
func sameTime(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	utc := t.UTC().Truncate(time.Microsecond)
	return &utc
}
