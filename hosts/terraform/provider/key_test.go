package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// roleState is a state with one role.
func roleState(t *testing.T, m roleModel) tfsdk.State {
	t.Helper()
	return stateOf(t, role, m)
}

// stateOf is a state with one object of a resource.
func stateOf[M model](t *testing.T, k kind[M], m M) tfsdk.State {
	t.Helper()
	s := tfsdk.State{Schema: k.whole(), Raw: tftypes.NewValue(k.whole().Type().TerraformType(t.Context()), nil)}
	if diags := s.Set(t.Context(), &m); diags.HasError() {
		t.Fatal(diags)
	}
	return s
}

// plannedKey is the key of a role that has one, and a text that its rotation hangs on, when another text is planned.
func plannedKey(t *testing.T, key, before, planned types.String) types.String {
	t.Helper()
	m := roleModel{ID: types.StringValue("r"), RotationKey: key, Rotation: before}
	state := roleState(t, m)
	m.Rotation = planned
	plan := roleState(t, m)
	resp := planmodifier.StringResponse{PlanValue: types.StringUnknown()}
	nextKey{}.PlanModifyString(t.Context(), planmodifier.StringRequest{
		Path: path.Root("rotation_key"), State: state, Plan: tfsdk.Plan(plan), StateValue: key,
	}, &resp)
	if resp.Diagnostics.HasError() {
		t.Fatal(resp.Diagnostics)
	}
	return resp.PlanValue
}

func TestARotationHasAKeyOfItsOwn(t *testing.T) {
	none, first := types.StringNull(), types.StringValue("first")
	a, b := types.StringValue("a"), types.StringValue("b")
	seen := map[string]bool{first.ValueString(): true}
	key, before := first, none
	for _, text := range []types.String{a, b, a, b} { // back again is another rotation
		next := plannedKey(t, key, before, text)
		if again := plannedKey(t, key, before, text); !again.Equal(next) {
			t.Errorf("planned twice, it is %s and %s", next, again)
		}
		if seen[next.ValueString()] || next.ValueString() == "" {
			t.Errorf("the key %s was used before", next)
		}
		seen[next.ValueString()] = true
		key, before = next, text
	}
	for what, got := range map[string]types.String{
		"the same text": plannedKey(t, first, a, a), "no text": plannedKey(t, first, none, none),
		"the text left out": plannedKey(t, first, a, none),
	} {
		if !got.Equal(first) {
			t.Errorf("%s has the key %s", what, got)
		}
	}
	if got := plannedKey(t, first, a, types.StringUnknown()); !got.IsUnknown() {
		t.Errorf("with a text that is not known yet, it is %s", got)
	}
	if got := plannedKey(t, none, none, a); got.IsUnknown() || got.IsNull() { // imported
		t.Errorf("without a key before, it is %s", got)
	}
	if a, b := chosen(types.StringUnknown()), chosen(types.StringNull()); a.Equal(b) || a.ValueString() == "" {
		t.Errorf("two creations have the keys %s and %s", a, b)
	}
}

func TestWhatHasEndedIsReplaced(t *testing.T) {
	for status, replaced := range map[string]bool{
		"ready": false, "reserved": false, "updating": false, "revoked": true, "expired": true,
	} {
		var resp planmodifier.StringResponse
		text := types.StringValue(status)
		state := roleState(t, roleModel{Status: text})
		anew{}.PlanModifyString(t.Context(), planmodifier.StringRequest{State: state, StateValue: text}, &resp)
		if resp.RequiresReplace != replaced || resp.PlanValue.IsUnknown() != replaced {
			t.Errorf("%s: replaced %t, planned %s", status, resp.RequiresReplace, resp.PlanValue)
		}
	}
}

// A secret that is told once stays until it is rotated, and is in no state that is to have none.
func TestASecretIsToldOnce(t *testing.T) {
	yes, no, unset, unknown := types.BoolValue(true), types.BoolValue(false), types.BoolNull(), types.BoolUnknown()
	none, a, b := types.StringNull(), types.StringValue("a"), types.StringValue("b")
	for what, c := range map[string]struct {
		kept            types.Bool
		had             types.String
		before, planned types.String
		want            types.String
		refused         bool
	}{
		"it stays":                      {unset, a, none, none, a, false},
		"it stays by choice":            {yes, a, a, a, a, false},
		"there was none":                {unset, none, none, none, none, false},
		"it is given up":                {no, a, none, none, none, false},
		"it is rotated":                 {unset, a, a, b, types.StringUnknown(), false},
		"the text is left out":          {unset, a, a, none, a, false},
		"nobody would have it":          {no, none, a, b, none, true},
		"whether it stays is not known": {unknown, a, none, none, types.StringUnknown(), false},
	} {
		state := stateOf(t, webhook, webhookModel{Rotation: c.before, Secret: c.had})
		plan := stateOf(t, webhook, webhookModel{Rotation: c.planned, SecretInState: c.kept, Secret: types.StringUnknown()})
		resp := planmodifier.StringResponse{PlanValue: types.StringUnknown()}
		once{kept: "secret_in_state", rotation: "rotation"}.PlanModifyString(t.Context(), planmodifier.StringRequest{
			State: state, Plan: tfsdk.Plan(plan), StateValue: c.had,
		}, &resp)
		if !resp.PlanValue.Equal(c.want) || resp.Diagnostics.HasError() != c.refused {
			t.Errorf("%s: %s, %v", what, resp.PlanValue, resp.Diagnostics)
		}
	}
	for kept, want := range map[types.Bool]types.String{unset: a, yes: a, no: none} {
		if got := unless(kept, "a"); !got.Equal(want) {
			t.Errorf("%s: the state has %s", kept, got)
		}
	}
}
