package executor

import (
	"context"
	"encoding/json"
	"regexp"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// loginOrder is a command about one login, read and checked.
type loginOrder struct {
	protocol.RolePayload
	command protocol.Command
	fresh   string // the password that shall work
	old     string // the one that shall be refused
}

// ensureLogin reads a login.ensure command.
func (x *Executor) ensureLogin(c protocol.Command) (action, error) {
	o := loginOrder{command: c, fresh: c.Secrets[protocol.SecretNew], old: c.Secrets[protocol.SecretOld]}
	if err := readPayload(c, &o.RolePayload); err != nil {
		return nil, err
	}
	do := map[string]func(context.Context, loginOrder) (json.RawMessage, error){
		protocol.LoginPrepared: x.prepareLogin, protocol.LoginOpen: x.openLogin, protocol.LoginRotate: x.changeLogin,
		protocol.LoginRevoke: x.changeLogin, protocol.LoginExpire: x.changeLogin, protocol.LoginRemove: x.removeLogin,
	}[o.Want]
	if do == nil || c.Step != o.Want {
		return nil, refuse(protocol.ReasonInvalid, "want is unknown, or not the command's step")
	}
	return func(ctx context.Context) (json.RawMessage, error) { return do(ctx, o) }, o.check()
}

var usernamePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// check refuses what cannot be carried out whatever stands on the server.
func (o loginOrder) check() error {
	db, err := id.Parse[id.DatabaseID](o.DatabaseID)
	switch {
	case err != nil || o.command.Resource != protocol.LoginResource(o.DatabaseID, o.Username):
		return refuse(protocol.ReasonInvalid, "databaseId is no UUID, or database and username are not the command's resource")
	case !usernamePattern.MatchString(o.Username), o.Want != protocol.LoginRotate && !isAdditional(db, o.Username):
		return refuse(protocol.ReasonInvalid, "username is none of an additional role of the database")
	}
	switch o.Want {
	case protocol.LoginPrepared:
		return o.checkGrants()
	case protocol.LoginOpen:
		if err := o.checkGrants(); err != nil {
			return err
		}
		return o.checkPassword()
	case protocol.LoginRotate:
		return o.checkPassword()
	case protocol.LoginRemove:
		return o.checkDatabases()
	}
	return nil
}

// isAdditional reports whether a username has the shape of the database's additional roles.
func isAdditional(db id.DatabaseID, username string) bool {
	prefix := "pgh_" + id.Compact(db) + "_c"
	return len(username) > len(prefix) && username[:len(prefix)] == prefix && ordinalPattern.MatchString(username[len(prefix):])
}

var ordinalPattern = regexp.MustCompile(`^[1-9][0-9]{0,8}$`)

func (o loginOrder) checkGrants() error {
	if _, err := role.ParseAccessProfile(o.AccessProfile); err != nil {
		return refuse(protocol.ReasonInvalid, "accessProfile is none of the protocol")
	}
	if o.ConnectionLimit < 1 || o.ConnectionLimit > maxConnectionCap {
		return refuse(protocol.ReasonInvalid, "connectionLimit must be from 1 to %d", maxConnectionCap)
	}
	return nil
}

func (o loginOrder) checkPassword() error {
	switch {
	case !verifierPattern.MatchString(o.Verifier):
		return refuse(protocol.ReasonInvalid, "verifier is none of SCRAM-SHA-256")
	case o.fresh == "":
		return refuse(protocol.ReasonInvalid, "the new password is missing")
	case o.CredentialGeneration < 0:
		return refuse(protocol.ReasonInvalid, "credentialGeneration is negative")
	}
	return nil
}

func (o loginOrder) checkDatabases() error {
	for _, text := range o.AccountDatabases {
		if _, err := id.Parse[id.DatabaseID](text); err != nil {
			return refuse(protocol.ReasonInvalid, "accountDatabases has something that is no UUID")
		}
	}
	return nil
}
