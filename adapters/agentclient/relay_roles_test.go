package agentclient_test

import (
	"context"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// ensureLogin is the relay's side of login.ensure.
func ensureLogin(ctx context.Context, behind ports.Agent, f ports.Fence, c protocol.Command) (any, error) {
	p := decoded[protocol.RolePayload](c)
	if c.Step != p.Want || c.Resource != protocol.LoginResource(p.DatabaseID, p.Username) {
		return nil, &ports.AgentRefusal{Reason: ports.ReasonInvalid}
	}
	switch p.Want {
	case protocol.LoginPrepared:
		return struct{}{}, behind.PrepareRole(ctx, f, roleOf(c, p))
	case protocol.LoginOpen:
		return struct{}{}, behind.AdmitRole(ctx, f, roleOf(c, p))
	case protocol.LoginRemove:
		return removeRole(ctx, behind, f, c, p)
	}
	proof, err := behind.ChangeLogin(ctx, f, ports.LoginChange{
		DatabaseID: id.DatabaseID(p.DatabaseID), Username: p.Username, Generation: c.Generation, Kind: role.Kind(p.Want),
		CredentialGeneration: p.CredentialGeneration, Verifier: p.Verifier, ValidUntil: p.ValidUntil,
		NewPassword: c.Secrets[protocol.SecretNew], OldPassword: c.Secrets[protocol.SecretOld],
	})
	return protocol.LoginProof(proof), err
}

func roleOf(c protocol.Command, p protocol.RolePayload) ports.RoleSpec {
	return ports.RoleSpec{
		DatabaseID: id.DatabaseID(p.DatabaseID), Username: p.Username, Generation: c.Generation,
		AccessProfile: role.AccessProfile(p.AccessProfile), ConnectionLimit: p.ConnectionLimit,
		Verifier: p.Verifier, ValidUntil: p.ValidUntil, Password: c.Secrets[protocol.SecretNew],
	}
}

func removeRole(ctx context.Context, behind ports.Agent, f ports.Fence, c protocol.Command, p protocol.RolePayload) (any, error) {
	spec := ports.RoleRemoval{DatabaseID: id.DatabaseID(p.DatabaseID), Username: p.Username, Generation: c.Generation}
	for _, db := range p.AccountDatabases {
		spec.AccountDatabases = append(spec.AccountDatabases, id.DatabaseID(db))
	}
	found, err := behind.RemoveRole(ctx, f, spec)
	result := protocol.LoginDependencies{List: []protocol.LoginDependency{}, Truncated: found.Truncated}
	for _, d := range found.List {
		result.List = append(result.List, protocol.LoginDependency{
			Kind: string(d.Kind), ObjectType: d.ObjectType, Schema: d.Schema, Name: d.Name, Identity: d.Identity,
		})
	}
	return result, err
}
