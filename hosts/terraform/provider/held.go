package provider

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// held are the objects of the state. Of one that is tainted, or replaced by "-replace", Terraform plans the new one as if there
// were none: whether one is there is known from here alone.
type held struct {
	mu      sync.Mutex
	objects map[string][]object // by the names of their resources
}

// object is what one of the state is known by.
type object struct {
	ID         string `json:"id"`
	DatabaseID string `json:"database_id"`
	Key        string `json:"idempotency_key"`
}

// server is the provider as Terraform calls it.
type server struct {
	tfprotov6.ProviderServer

	held *held
}

// NewServer makes the provider as Terraform calls it.
func NewServer() tfprotov6.ProviderServer {
	of := new(held)
	return server{providerserver.NewProtocol6(pgherd{of})(), of}
}

// UpgradeResourceState implements tfprotov6.ResourceServer. Terraform calls it for each object of the state, also for one that it
// does not refresh, before it plans anything for that.
func (s server) UpgradeResourceState(
	ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	if req.RawState != nil {
		s.held.add(strings.TrimPrefix(req.TypeName, "pgherd_"), req.RawState.JSON)
	}
	return s.ProviderServer.UpgradeResourceState(ctx, req)
}

func (h *held) add(resource string, state []byte) {
	var o object
	_ = json.Unmarshal(state, &o) // what is wrong with a state is said where it is read
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.objects == nil {
		h.objects = map[string][]object{}
	}
	h.objects[resource] = append(h.objects[resource], o)
}

// has reports whether the state has such an object of a resource.
func (h *held) has(resource string, is func(object) bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.objects[resource], is)
}

// unspent refuses to plan another object with the key of one that the state has: the service makes nothing twice with a key, also
// after what was made with it is deleted. A key is that of a resource and, where it belongs to one, of a database.
func (h *held) unspent(resource string, of, key types.String) error {
	if key.IsUnknown() || of.IsUnknown() || !h.has(resource, func(o object) bool {
		return o.Key == key.ValueString() && o.DatabaseID == of.ValueString()
	}) {
		return nil
	}
	return errors.New("idempotency_key is that of the one which the state has: another one needs another key. What Terraform " +
		`holds for tainted is kept by "terraform untaint"`)
}
