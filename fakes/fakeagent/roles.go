package fakeagent

import (
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

func (s *Server) prepareRole(f ports.Fence, d *databaseState, c command.PrepareRole) (none command.None, err error) {
	l, found := d.logins[c.Username]
	model := role.ModelOf(d.model)
	switch {
	case !model.Names(d.id, c.Username), !d.hasGroups():
		return none, command.Refuse(command.ReasonInvalid, "the database has no such roles")
	case found && (!l.additional || l.madeBy != f.OperationID), !found && s.taken(c.Username):
		return none, command.Refuse(command.ReasonNameTaken, "the server has a role %s", c.Username)
	case !found:
		l = &login{additional: true, connect: !model.OwnerConnects, madeBy: f.OperationID}
		d.logins[c.Username] = l
	}
	l.profile, l.limit = c.AccessProfile, c.ConnectionLimit
	return none, nil
}

func (s *Server) ensureOverlay(d *databaseState) (none command.None, err error) {
	names := database.RoleNames(d.id, d.name)
	switch {
	case d.model != database.SingleLogin:
		return none, command.Refuse(command.ReasonInvalid, "the database has managed roles")
	case !d.overlay && (s.taken(names.ReadGroup) || s.taken(names.WriteGroup)):
		return none, command.Refuse(command.ReasonNameTaken, "the server has a role of that name that is not ours")
	}
	d.overlay = true
	if leaves := s.faults.leaves; !d.spread && leaves != nil && leaves() {
		return none, command.Refuse(command.ReasonUnfinished, "the group roles do not have all rights yet: a table is in use")
	}
	d.spread = true
	return none, nil
}

func (s *Server) admitRole(d *databaseState, c command.AdmitRole) (none command.None, err error) {
	l, found := d.logins[c.Username]
	switch {
	case !found:
		return none, command.Refuse(command.ReasonNotFound, "the server has no role %s", c.Username)
	case !d.open && !c.Stopped:
		err = command.Refuse(command.ReasonDatabaseClosed, "the database is stopped")
	case l.empowered && role.ModelOf(d.model).OwnerConnects:
		err = command.Refuse(command.ReasonAltered, "an administrator has changed %s", c.Username)
	case !l.connect:
		err = command.Refuse(command.ReasonConnectRequired, "the owner has withdrawn CONNECT from %s", c.Username)
	case !credential.Matches(c.Verifier, c.Password), s.past(c.ValidUntil):
		err = command.Refuse(command.ReasonFailed, "the role could not log in")
	}
	if l.open = err == nil; !l.open {
		return none, err
	}
	l.profile, l.limit, l.verifier, l.until = c.AccessProfile, c.ConnectionLimit, c.Verifier, c.ValidUntil
	return none, nil
}

// found looks at an additional role. It is in the group of its profile once it has been admitted.
func (s *Server) found(q command.ReadOutcome) role.Found {
	d := s.databases[q.DatabaseID]
	if d == nil || d.logins[q.Username] == nil {
		return role.Found{}
	}
	l := d.logins[q.Username]
	seen := role.Login{Limit: l.limit, Empowered: l.empowered, Password: role.NoPassword}
	if l.verifier != "" && l.verifier == q.Verifier {
		seen.Password = role.OurPassword
	}
	seen.InGroup = q.AccessProfile == role.Custom || l.verifier != "" && l.profile == q.AccessProfile && d.hasGroups()
	return role.Found{Present: true, Open: l.open, Altered: seen.Altered(q.ConnectionLimit), Lacks: seen.Lacks(l.open)}
}

func (s *Server) changeLogin(d *databaseState, c command.ChangeLogin) (role.Proof, error) {
	if c.Want == role.Rotation {
		return d.rotate(c, s.past(c.ValidUntil))
	}
	return d.shut(c)
}

// rotate sets a new password. One whose validity is over already lets nobody in.
func (d *databaseState) rotate(c command.ChangeLogin, lapsed bool) (role.Proof, error) {
	l, found := d.logins[c.Username]
	switch {
	case !found:
		return role.Proof{}, command.Refuse(command.ReasonNotFound, "the server has no login %s", c.Username)
	case !d.open:
		return role.Proof{}, command.Refuse(command.ReasonDatabaseClosed, "the database is stopped")
	case c.CredentialGeneration < l.credential:
		return role.Proof{}, command.Refuse(command.ReasonStale, "a newer password is in force")
	case !credential.Matches(c.Verifier, c.NewPassword):
		return role.Proof{}, command.Refuse(command.ReasonFailed, "the new password does not get in")
	case c.OldPassword == c.NewPassword:
		return role.Proof{}, command.Refuse(command.ReasonFailed, "the old password still gets in")
	case l.obstructed:
		l.open = false
		return role.Proof{}, errObstructed
	}
	l.verifier, l.credential, l.open, l.lapsed, l.until = c.Verifier, c.CredentialGeneration, true, lapsed, c.ValidUntil
	proof := d.proof(c)
	proof.Lapsed, proof.Closed = lapsed, !lapsed && d.settings.Closed
	proof.NewAccepted = !lapsed && !proof.Closed
	proof.ConnectMissing = proof.NewAccepted && !l.connect
	return proof, nil
}

func (d *databaseState) shut(c command.ChangeLogin) (role.Proof, error) {
	l, found := d.logins[c.Username]
	switch {
	case !found:
		proof := d.proof(c)
		proof.Absent = true
		return proof, nil
	case !l.additional:
		return role.Proof{}, command.Refuse(command.ReasonInvalid, "%s came with the database", c.Username)
	}
	l.open = false
	if l.obstructed {
		return role.Proof{}, errObstructed
	}
	if c.Want == role.Revocation {
		l.verifier = ""
	}
	return d.proof(c), nil
}

var errObstructed = command.Refuse(command.ReasonFailed, "PostgreSQL refused (SQLSTATE 42501)")

// proof ends the sessions of a login whose old password is dead, and says so.
func (d *databaseState) proof(c command.ChangeLogin) role.Proof {
	ended := d.disconnect(c.Username)
	return role.Proof{
		ClientsClosed: ended, SessionsEnded: ended, NoneLeft: true, OldRefused: c.OldPassword != "",
	}
}

// removeRole looks into no database that is out of service.
func (s *Server) removeRole(d *databaseState, c command.RemoveRole) (none role.Dependencies, err error) {
	l, standing := d.logins[c.Username]
	switch {
	case !standing:
		return none, nil
	case !l.additional:
		return none, command.Refuse(command.ReasonInvalid, "%s came with the database", c.Username)
	case l.obstructed:
		return none, errObstructed
	}
	d.disconnect(c.Username)
	account := slices.DeleteFunc(slices.Clone(c.AccountDatabases), func(db id.DatabaseID) bool { return !s.inService(db) })
	dependencies := found(l.dependents, c.DatabaseID, account)
	if dependencies.Any() {
		l.open, l.verifier = false, ""
		return dependencies, nil
	}
	delete(d.logins, c.Username)
	return none, nil
}

func (d *databaseState) condition(username, verifier string) command.LoginCondition {
	l, found := d.logins[username]
	switch {
	case !found:
		return command.LoginAbsent
	case l.verifier == "" || l.verifier != verifier:
		return command.LoginDrifted
	case !l.open || l.lapsed || !d.open:
		return command.LoginShut
	}
	return command.LoginInForce
}

// past reports whether a validity is over. The fake asks its clock for nothing else about a password.
func (s *Server) past(until *time.Time) bool { return until != nil && !s.clock.Now().Before(*until) }
