package httpapi

import (
	"golang.org/x/text/unicode/norm"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

func viewRole(s roles.State) wire.Role {
	return wire.Role{
		RoleID: s.ID, Profile: role.Profile, DisplayName: s.DisplayName, AccessProfile: s.AccessProfile, Username: s.Username,
		Ordinal: s.Ordinal, ConnectionLimit: s.ConnectionLimit, Generation: s.SetGeneration,
		CredentialGeneration: s.CredentialGeneration, Status: s.Status, CredentialExpiresAt: instantOrNull(s.CredentialExpiresAt),
	}
}

func viewListedRole(s roles.State) wire.ListedRole {
	v := wire.ListedRole{Role: viewRole(s)}
	if s.Status == role.Updating {
		v.OperationID = nullIfZero(s.ChangeID)
	}
	return v
}

func viewSetup(s roles.State) wire.RoleSetup {
	return wire.RoleSetup{
		RoleID: s.ID, Profile: role.Profile, Username: s.Username, DisplayName: s.DisplayName, AccessProfile: s.AccessProfile,
		Ordinal: s.Ordinal, Status: s.Status,
	}
}

func viewCredential(r database.Record, password string) wire.Credential {
	return wire.Credential{Host: r.Host, Port: r.Port, Database: r.Name, TLSRequired: true, Password: password}
}

type customRoles struct{ use *roles.Roles }

// roleOf is the role that the path names; whether the database has it is for the use case to say.
func roleOf(r *serve.Request) id.RoleID { return id.RoleID(r.Param("roleId")) }

func (c customRoles) list(r *serve.Request) (out wire.Roles[wire.ListedRole], err error) {
	revoked, err := r.Flag("includeRevoked")
	if err != nil {
		return out, err
	}
	list, err := c.use.List(r.Context(), databaseOf(r), revoked)
	return wire.Roles[wire.ListedRole]{Roles: mapped(list, viewListedRole)}, err
}

func (c customRoles) create(r *serve.Request) (wire.Role, error) {
	body := serve.Decoded[wire.CreateRole](r)
	made, err := c.use.Create(r.Context(), databaseOf(r), role.Request{
		DisplayName: label(body.DisplayName), AccessProfile: body.AccessProfile,
		ConnectionLimit: body.ConnectionLimit, Key: r.Key,
	})
	return viewRole(made), err
}

func (c customRoles) prepare(r *serve.Request) (wire.RoleSetup, error) {
	prepared, err := c.use.Prepare(r.Context(), databaseOf(r), roleOf(r))
	return viewSetup(prepared), err
}

func (c customRoles) admit(r *serve.Request) (wire.RoleSetup, error) {
	admitted, err := c.use.Admit(r.Context(), databaseOf(r), roleOf(r))
	return viewSetup(admitted), err
}

// label composes a role's label, so that the two encodings of an accented letter make one label: labels must be unique, and core
// does without Unicode's tables for that.
func label(text string) string { return norm.NFC.String(text) }

func (c customRoles) rename(r *serve.Request) (wire.RoleLabel, error) {
	renamed, err := c.use.Rename(r.Context(), databaseOf(r), roleOf(r), label(serve.Decoded[wire.RenameRole](r).DisplayName))
	return wire.RoleLabel{RoleID: renamed.ID, DisplayName: renamed.DisplayName}, err
}

func (c customRoles) reveal(r *serve.Request) (wire.RevealedRole, error) {
	shown, err := c.use.Reveal(r.Context(), databaseOf(r), roleOf(r))
	return wire.RevealedRole{
		Role: viewRole(shown.State), Credential: viewCredential(databaseOf(r).Record(), shown.Password),
	}, err
}

// confirmed refuses false where a request has to confirm what it asks for; a field that is missing was refused before.
func confirmed(field string, said bool) error {
	if !said {
		return fault.Invalid(field, "must be true")
	}
	return nil
}
