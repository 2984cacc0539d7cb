package httpapi

import (
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// roleView is the spec's additional role. Generation is that of the database's role set. CredentialExpiresAt is there only where
// the credential's validity ends.
type roleView struct {
	RoleID               id.RoleID          `json:"roleId" format:"uuid"`
	Profile              string             `json:"profile" enum:"custom"`
	DisplayName          string             `json:"displayName"`
	AccessProfile        role.AccessProfile `json:"accessProfile" enum:"read_only,read_write,custom"`
	Username             string             `json:"username"`
	Ordinal              int                `json:"ordinal"`
	ConnectionLimit      int                `json:"connectionLimit"`
	Generation           int64              `json:"generation"`
	CredentialGeneration int64              `json:"credentialGeneration"`
	Status               role.Status        `json:"status" enum:"reserved,sql_ready,ready,updating,revoked,expired"`
	CredentialExpiresAt  *time.Time         `json:"credentialExpiresAt,omitzero"`
}

func viewRole(s controlplane.RoleState) roleView {
	return roleView{
		RoleID: s.ID, Profile: role.Profile, DisplayName: s.DisplayName, AccessProfile: s.AccessProfile, Username: s.Username,
		Ordinal: s.Ordinal, ConnectionLimit: s.ConnectionLimit, Generation: s.SetGeneration,
		CredentialGeneration: s.CredentialGeneration, Status: s.Status, CredentialExpiresAt: instantOrNull(s.CredentialExpiresAt),
	}
}

// listedRoleView adds what only the list tells: the pending change of a role that is updating.
type listedRoleView struct {
	roleView
	OperationID *id.OperationID `json:"operationId" format:"uuid"`
}

func viewListedRole(s controlplane.RoleState) listedRoleView {
	v := listedRoleView{roleView: viewRole(s)}
	if s.Status == role.Updating {
		v.OperationID = nullIfZero(s.ChangeID)
	}
	return v
}

// rolesView is the answer of a list of roles or logins: it has no pages.
type rolesView[T any] struct {
	Roles []T `json:"roles"`
}

// setupView is what the two steps of a set-up answer.
type setupView struct {
	RoleID        id.RoleID          `json:"roleId" format:"uuid"`
	Profile       string             `json:"profile" enum:"custom"`
	Username      string             `json:"username"`
	DisplayName   string             `json:"displayName"`
	AccessProfile role.AccessProfile `json:"accessProfile" enum:"read_only,read_write,custom"`
	Ordinal       int                `json:"ordinal"`
	Status        role.Status        `json:"status" enum:"sql_ready,ready"`
}

func viewSetup(s controlplane.RoleState) setupView {
	return setupView{s.ID, role.Profile, s.Username, s.DisplayName, s.AccessProfile, s.Ordinal, s.Status}
}

// credentialView is how to log in. The pooler takes connections with TLS only.
type credentialView struct {
	Host        string `json:"host"`
	Port        int    `json:"port"`
	Database    string `json:"database"`
	TLSRequired bool   `json:"tlsRequired"`
	Password    string `json:"password"`
}

func viewCredential(r database.Record, password string) credentialView {
	return credentialView{Host: r.Host, Port: r.Port, Database: r.Name, TLSRequired: true, Password: password}
}

// revealedRoleView is the only answer with a role's password.
type revealedRoleView struct {
	roleView
	credentialView
}

// renamedRoleView is the answer to a new label.
type renamedRoleView struct {
	RoleID      id.RoleID `json:"roleId" format:"uuid"`
	DisplayName string    `json:"displayName"`
}

type customRoles struct{ use *controlplane.Roles }

// roleID is the role that the path names; whether the database has it is for the use case to say.
func (r *Request) roleID() id.RoleID { return id.RoleID(r.Param("roleId")) }

func (c customRoles) list(r *Request) (Answer, error) {
	revoked, err := r.Flag("includeRevoked")
	if err != nil {
		return Answer{}, err
	}
	list, err := c.use.List(r.Context(), r.reached(), revoked)
	if err != nil {
		return Answer{}, err
	}
	return OK(rolesView[listedRoleView]{mapped(list, viewListedRole)}), nil
}

type roleBody struct {
	DisplayName     *string `json:"displayName" required:"true" doc:"1-64 characters, unique among the database's roles"`
	AccessProfile   *string `json:"accessProfile" required:"true" enum:"read_only,read_write,custom"`
	ConnectionLimit *int    `json:"connectionLimit" required:"true" doc:"1 or more, within the database's role budget"`
}

func (c customRoles) create(r *Request) (Answer, error) {
	body := Decoded[roleBody](r)
	made, err := c.use.Create(r.Context(), r.reached(), role.Request{
		DisplayName: label(*body.DisplayName), AccessProfile: role.AccessProfile(*body.AccessProfile),
		ConnectionLimit: *body.ConnectionLimit, Key: r.Key,
	})
	if err != nil {
		return Answer{}, err
	}
	return OK(viewRole(made)), nil
}

func (c customRoles) prepare(r *Request) (Answer, error) {
	prepared, err := c.use.Prepare(r.Context(), r.reached(), r.roleID())
	if err != nil {
		return Answer{}, err
	}
	return Accepted(viewSetup(prepared)), nil
}

func (c customRoles) admit(r *Request) (Answer, error) {
	admitted, err := c.use.Admit(r.Context(), r.reached(), r.roleID())
	if err != nil {
		return Answer{}, err
	}
	return OK(viewSetup(admitted)), nil
}

// label composes a role's label, so that the two encodings of an accented letter make one label: labels must be unique, and core
// does without Unicode's tables for that.
func label(text string) string { return norm.NFC.String(text) }

type labelBody struct {
	DisplayName *string `json:"displayName" required:"true" doc:"1-64 characters, unique among the database's roles"`
}

func (c customRoles) rename(r *Request) (Answer, error) {
	renamed, err := c.use.Rename(r.Context(), r.reached(), r.roleID(), label(*Decoded[labelBody](r).DisplayName))
	if err != nil {
		return Answer{}, err
	}
	return OK(renamedRoleView{renamed.ID, renamed.DisplayName}), nil
}

func (c customRoles) reveal(r *Request) (Answer, error) {
	shown, err := c.use.Reveal(r.Context(), r.reached(), r.roleID())
	if err != nil {
		return Answer{}, err
	}
	return OK(revealedRoleView{viewRole(shown.RoleState), viewCredential(r.reached().Record(), shown.Password)}), nil
}

// confirmed refuses false where a request has to confirm what it asks for; a field that is missing was refused before.
func confirmed(field string, said *bool) error {
	if !*said {
		return fault.Invalid(field, "must be true")
	}
	return nil
}
