package httpapi

import (
	"slices"

	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// loginView is a login that was created with the database.
type loginView struct {
	Login                database.Login `json:"login" enum:"owner,runtime,readonly"`
	Username             string         `json:"username"`
	ConnectionLimit      int            `json:"connectionLimit"`
	CredentialGeneration int64          `json:"credentialGeneration"`
}

func viewLogin(l controlplane.ManagedLogin) loginView {
	return loginView{l.Login, l.Username, l.ConnectionLimit, l.CredentialGeneration}
}

// revealedLoginView adds the password and how to connect.
type revealedLoginView struct {
	loginView
	credentialView
}

// loginRotationView is the change of a login's password. It has the owner's new password once, which nothing else reveals.
type loginRotationView struct {
	OperationID          id.OperationID    `json:"operationId" format:"uuid"`
	Login                database.Login    `json:"login" enum:"owner,runtime,readonly"`
	Kind                 role.Kind         `json:"kind" enum:"rotate"`
	Status               role.ChangeStatus `json:"status" enum:"pending,completed"`
	CredentialGeneration int64             `json:"credentialGeneration"`
	Password             string            `json:"password,omitzero"`
}

func viewLoginRotation(l controlplane.LoginRotation) loginRotationView {
	return loginRotationView{l.ID, l.Login, l.Kind, l.Status, l.CredentialGeneration, l.Password}
}

type managedRoles struct{ use *controlplane.ManagedLogins }

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
	logins, err := m.use.List(r.Context(), r.reached())
	if err != nil {
		return Answer{}, err
	}
	return OK(rolesView[loginView]{mapped(logins, viewLogin)}), nil
}

func (m managedRoles) reveal(r *Request) (Answer, error) {
	login, err := r.login()
	if err != nil {
		return Answer{}, err
	}
	shown, err := m.use.Reveal(r.Context(), r.reached(), login)
	if err != nil {
		return Answer{}, err
	}
	return OK(revealedLoginView{viewLogin(shown.ManagedLogin), viewCredential(r.reached().Record(), shown.Password)}), nil
}

func (m managedRoles) rotate(r *Request) (Answer, error) {
	if err := confirmed("confirmDisconnect", Decoded[disconnectBody](r).ConfirmDisconnect); err != nil {
		return Answer{}, err
	}
	login, err := r.login()
	if err != nil {
		return Answer{}, err
	}
	rotation, err := m.use.Rotate(r.Context(), r.reached(), login, r.Key)
	if err != nil {
		return Answer{}, err
	}
	return progress(rotation.Change, viewLoginRotation(rotation)), nil
}
