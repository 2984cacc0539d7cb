package httpapi

import (
	"slices"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

func viewLogin(l roles.ManagedLogin) wire.Login {
	return wire.Login{
		Login: l.Login, Username: l.Username, ConnectionLimit: l.ConnectionLimit, CredentialGeneration: l.CredentialGeneration,
	}
}

func viewLoginRotation(l roles.LoginRotation) wire.LoginRotation {
	return wire.LoginRotation{
		OperationID: l.ID, Login: l.Login, Kind: l.Kind, Status: l.Status, CredentialGeneration: l.CredentialGeneration,
		Password: l.Password,
	}
}

type managedRoles struct{ use *roles.ManagedLogins }

// login is what the path names. ROLE_NOT_FOUND where no database has such a login; whether this one has it is for the use case to
// say.
func (r *Request) login() (database.Login, error) {
	l := database.Login(r.Param(loginParameter))
	if !slices.Contains(database.Managed.Logins(), l) {
		return "", role.ErrNotFound()
	}
	return l, nil
}

func (m managedRoles) list(r *Request) (Answer, error) {
	logins, err := m.use.List(r.Context(), r.database())
	return OK(wire.Roles[wire.Login]{Roles: mapped(logins, viewLogin)}), err
}

func (m managedRoles) reveal(r *Request) (Answer, error) {
	login, err := r.login()
	if err != nil {
		return Answer{}, err
	}
	shown, err := m.use.Reveal(r.Context(), r.database(), login)
	return OK(wire.RevealedLogin{
		Login: viewLogin(shown.ManagedLogin), Credential: viewCredential(r.database().Record(), shown.Password),
	}), err
}

func (m managedRoles) rotate(r *Request) (Answer, error) {
	if err := confirmed("confirmDisconnect", Decoded[wire.Disconnect](r).ConfirmDisconnect); err != nil {
		return Answer{}, err
	}
	login, err := r.login()
	if err != nil {
		return Answer{}, err
	}
	rotation, err := m.use.Rotate(r.Context(), r.database(), login, r.Key)
	return progress(rotation.Change, viewLoginRotation(rotation)), err
}
