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
	s := tfsdk.State{Schema: role.schema, Raw: tftypes.NewValue(role.schema.Type().TerraformType(t.Context()), nil)}
	if diags := s.Set(t.Context(), &m); diags.HasError() {
		t.Fatal(diags)
	}
	return s
}

// plannedKey is the key of a role that has one, and a text that its rotation hangs on, when another text is planned.
func plannedKey(t *testing.T, key, before, planned types.String) types.String {
	t.Helper()
	m := roleModel{ID: types.StringValue("r"), IdempotencyKey: key, Rotation: before}
	state := roleState(t, m)
	m.Rotation = planned
	plan := roleState(t, m)
	resp := planmodifier.StringResponse{PlanValue: types.StringUnknown()}
	nextKey{}.PlanModifyString(t.Context(), planmodifier.StringRequest{
		Path: path.Root("idempotency_key"), State: state, Plan: tfsdk.Plan{Schema: plan.Schema, Raw: plan.Raw}, StateValue: key,
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

func TestAProtectedDatabaseIsNotLost(t *testing.T) {
	is := func(name string, protected bool) databaseModel {
		return databaseModel{
			Name: types.StringValue(name), DisplayName: types.StringValue("Shop"), RoleModel: types.StringValue("managed"),
			DeletionProtection: types.BoolValue(protected),
		}
	}
	other, unknown, open := is("other", true), is("", true), is("other", false)
	unknown.Name = types.StringUnknown()
	same := is("shop", false)
	for what, c := range map[string]struct {
		protected bool
		planned   *databaseModel
		refused   bool
	}{
		"deleted": {true, nil, true}, "deleted, not protected": {false, nil, false},
		"replaced": {true, &other, true}, "replaced by who knows what": {true, &unknown, true},
		"replaced, and protected no more": {true, &open, true}, "replaced, not protected": {false, &other, false},
		"protected no more": {true, &same, false},
	} {
		if err := guardDatabase(is("shop", c.protected), c.planned); (err != nil) != c.refused {
			t.Errorf("%s: %v", what, err)
		}
	}
}
