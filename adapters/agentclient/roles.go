package agentclient

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// ensureLogin sends a login.ensure command.
func (c *client) ensureLogin(
	ctx context.Context, f ports.Fence, generation int64, p protocol.RolePayload, secrets map[string]string, out any,
) error {
	return c.order(ctx, command{
		kind: protocol.EnsureLogin, step: p.Want, fence: f, generation: generation,
		resource: protocol.LoginResource(p.DatabaseID, p.Username), payload: p, secrets: secrets,
	}, out)
}

// PrepareRole implements ports.RoleAgent.
func (c *client) PrepareRole(ctx context.Context, f ports.Fence, spec ports.RoleSpec) error {
	return c.ensureLogin(ctx, f, spec.Generation, protocol.RolePayload{
		DatabaseID: string(spec.DatabaseID), Username: spec.Username, Want: protocol.LoginPrepared,
		AccessProfile: string(spec.AccessProfile), ConnectionLimit: spec.ConnectionLimit,
	}, nil, nil)
}

// AdmitRole implements ports.RoleAgent.
func (c *client) AdmitRole(ctx context.Context, f ports.Fence, spec ports.RoleSpec) error {
	return c.ensureLogin(ctx, f, spec.Generation, protocol.RolePayload{
		DatabaseID: string(spec.DatabaseID), Username: spec.Username, Want: protocol.LoginOpen,
		AccessProfile: string(spec.AccessProfile), ConnectionLimit: spec.ConnectionLimit,
		Verifier: spec.Verifier, ValidUntil: canonicalTime(spec.ValidUntil),
	}, passwords(spec.Password, ""), nil)
}

// ChangeLogin implements ports.RoleAgent.
func (c *client) ChangeLogin(ctx context.Context, f ports.Fence, spec ports.LoginChange) (role.Proof, error) {
	want, known := wanted(spec.Kind)
	if !known {
		return role.Proof{}, &ports.AgentRefusal{Reason: ports.ReasonInvalid, Message: "no change of a login: " + string(spec.Kind)}
	}
	var proof protocol.LoginProof
	err := c.ensureLogin(ctx, f, spec.Generation, protocol.RolePayload{
		DatabaseID: string(spec.DatabaseID), Username: spec.Username, Want: want,
		Verifier: spec.Verifier, ValidUntil: canonicalTime(spec.ValidUntil), CredentialGeneration: spec.CredentialGeneration,
	}, passwords(spec.NewPassword, spec.OldPassword), &proof)
	return role.Proof(proof), err
}

// wanted is the desired state for a change; a removal is a separate command.
func wanted(kind role.Kind) (want string, known bool) {
	switch kind {
	case role.Rotation:
		return protocol.LoginRotate, true
	case role.Revocation:
		return protocol.LoginRevoke, true
	case role.Expiry:
		return protocol.LoginExpire, true
	case role.Removal:
	}
	return "", false
}

// RemoveRole implements ports.RoleAgent.
func (c *client) RemoveRole(ctx context.Context, f ports.Fence, spec ports.RoleRemoval) (role.Dependencies, error) {
	databases := make([]string, 0, len(spec.AccountDatabases))
	for _, db := range spec.AccountDatabases {
		databases = append(databases, string(db))
	}
	slices.Sort(databases)
	var result protocol.LoginDependencies
	err := c.ensureLogin(ctx, f, spec.Generation, protocol.RolePayload{
		DatabaseID: string(spec.DatabaseID), Username: spec.Username, Want: protocol.LoginRemove,
		AccountDatabases: slices.Compact(databases),
	}, nil, &result)
	found := role.Dependencies{Truncated: result.Truncated}
	for _, d := range result.List {
		found.List = append(found.List, role.Dependency{
			Kind: role.DependencyKind(d.Kind), ObjectType: d.ObjectType, Schema: d.Schema, Name: d.Name, Identity: d.Identity,
		})
	}
	return found, err
}

// InspectLogin implements ports.RoleAgent.
func (c *client) InspectLogin(
	ctx context.Context, db id.DatabaseID, username, verifier string,
) (ports.LoginCondition, error) {
	body, err := json.Marshal(protocol.LoginQuestion{DatabaseID: string(db), Username: username, Verifier: verifier})
	if err != nil {
		return "", err
	}
	var answer protocol.LoginAnswer
	if err := c.exchange(ctx, route{method: http.MethodPost, path: "/v1/logins/inspect"}, body, &answer); err != nil {
		return "", err
	}
	condition, known := conditions[answer.Condition]
	if !known {
		return "", unknown(errors.New("its answer has a condition that is not in the protocol"))
	}
	return condition, nil
}

var conditions = map[string]ports.LoginCondition{
	protocol.ConditionInForce: ports.LoginInForce, protocol.ConditionDrifted: ports.LoginDrifted,
	protocol.ConditionShut: ports.LoginShut, protocol.ConditionAbsent: ports.LoginAbsent,
}

// passwords are the secrets of a command, without empty ones.
func passwords(fresh, old string) map[string]string {
	secrets := map[string]string{}
	if fresh != "" {
		secrets[protocol.SecretNew] = fresh
	}
	if old != "" {
		secrets[protocol.SecretOld] = old
	}
	return secrets
}

// canonicalTime gives a time the same text whenever it is sent, whether it comes from a store or from a clock.
func canonicalTime(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	utc := t.UTC().Truncate(time.Microsecond)
	return &utc
}
