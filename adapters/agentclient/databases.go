package agentclient

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"slices"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// EnsureDatabase implements ports.DatabaseAgent.
func (c *client) EnsureDatabase(ctx context.Context, f ports.Fence, spec ports.DatabaseSpec) error {
	logins, secrets := loginPayloads(spec.Logins)
	return c.order(ctx, command{
		kind: protocol.EnsureDatabase, fence: f, generation: 1,
		resource: protocol.DatabaseResource(string(spec.ID)),
		payload: protocol.DatabasePayload{
			DatabaseID: string(spec.ID), Name: spec.Name, RoleModel: string(spec.RoleModel),
			ConnectionCap: spec.ConnectionCap, Logins: logins,
		},
		secrets: secrets,
	}, nil)
}

// loginPayloads separates logins, in a fixed order, from their passwords.
func loginPayloads(specs []ports.LoginSpec) ([]protocol.LoginPayload, map[string]string) {
	logins, secrets := make([]protocol.LoginPayload, 0, len(specs)), map[string]string{}
	for _, l := range specs {
		logins = append(logins, protocol.LoginPayload{Login: string(l.Login), Username: l.Username, Verifier: l.Verifier})
		if l.Password != "" {
			secrets[l.Username] = l.Password
		}
	}
	slices.SortFunc(logins, func(a, b protocol.LoginPayload) int {
		return cmp.Or(cmp.Compare(a.Login, b.Login), cmp.Compare(a.Username, b.Username))
	})
	return logins, secrets
}

// SetAccess implements ports.DatabaseAgent.
func (c *client) SetAccess(ctx context.Context, f ports.Fence, spec ports.AccessSpec) error {
	return c.order(ctx, command{
		kind: protocol.SetAccess, fence: f, generation: spec.Generation,
		resource: protocol.DatabaseResource(string(spec.DatabaseID)),
		payload: protocol.AccessPayload{
			DatabaseID: string(spec.DatabaseID), Open: spec.Open, Disconnect: spec.Disconnect,
		},
	}, nil)
}

// SetAllowlist implements ports.DatabaseAgent.
func (c *client) SetAllowlist(ctx context.Context, spec ports.AllowlistSpec) error {
	return c.order(ctx, command{
		kind: protocol.SetAllowlist, generation: spec.Generation,
		resource: protocol.DatabaseResource(string(spec.DatabaseID)),
		payload: protocol.AllowlistPayload{
			DatabaseID: string(spec.DatabaseID), Networks: networkTexts(spec.Networks),
		},
	}, nil)
}

// networkTexts formats networks as a set, so that their order and duplicates do not matter.
func networkTexts(networks []netip.Prefix) []string {
	texts := make([]string, 0, len(networks))
	for _, n := range networks {
		texts = append(texts, n.String())
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// DatabaseSize implements ports.DatabaseAgent.
func (c *client) DatabaseSize(ctx context.Context, db id.DatabaseID) (int64, error) {
	var size protocol.Size
	err := c.exchange(ctx, route{method: http.MethodGet, path: databasePath(db) + "/size"}, nil, &size)
	return size.Bytes, err
}
