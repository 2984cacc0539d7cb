package httpapi

import (
	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
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

func (m managedRoles) list(r *serve.Request) (wire.Roles[wire.Login], error) {
	logins, err := m.use.List(r.Context(), databaseOf(r))
	return wire.Roles[wire.Login]{Roles: mapped(logins, viewLogin)}, err
}

func (m managedRoles) reveal(r *serve.Request) (wire.RevealedLogin, error) {
	shown, err := m.use.Reveal(r.Context(), databaseOf(r), loginOf(r))
	return wire.RevealedLogin{
		Login: viewLogin(shown.ManagedLogin), Credential: viewCredential(databaseOf(r).Record(), shown.Password),
	}, err
}

func (m managedRoles) rotate(r *serve.Request) (_ wire.LoginRotation, isDone bool, err error) {
	if err := confirmed("confirmDisconnect", serve.Decoded[wire.Disconnect](r).ConfirmDisconnect); err != nil {
		return wire.LoginRotation{}, false, err
	}
	rotation, err := m.use.Rotate(r.Context(), databaseOf(r), loginOf(r), r.Key)
	return viewLoginRotation(rotation), !rotation.Open(), err
}

// loginOf is the login that the path names; whether the database has it is for the use case to say.
func loginOf(r *serve.Request) database.Login { return database.Login(r.Param(serve.LoginParameter)) }
