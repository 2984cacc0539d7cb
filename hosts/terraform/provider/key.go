package provider

import (
	"context"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// idempotencyKey is what a creation, or a rotation, is asked with. It is planned, so that a plan that is applied again after a crash asks for the
// same thing, and makes it once.
func idempotencyKey() schema.StringAttribute {
	return schema.StringAttribute{
		Computed:            true,
		MarkdownDescription: "The key that it was asked for with, or its last rotation. A plan that is applied again does that once.",
		PlanModifiers:       []planmodifier.String{newKey{}},
	}
}

type newKey struct{}

func (newKey) Description(context.Context) string {
	return "a new resource, or rotation, has a new key"
}

func (n newKey) MarkdownDescription(ctx context.Context) string { return n.Description(ctx) }

// PlanModifyString implements planmodifier.String.
func (newKey) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.Plan.Raw.IsNull() { // it is deleted
		return
	}
	resp.PlanValue = req.StateValue
	if req.State.Raw.IsNull() || rotates(ctx, req) {
		resp.PlanValue = types.StringValue(uuid.NewString())
	}
}

// rotates reports whether a plan changes the text that a rotation hangs on.
func rotates(ctx context.Context, req planmodifier.StringRequest) bool {
	var before, planned types.String
	at := path.Root("rotation")
	if req.Plan.GetAttribute(ctx, at, &planned).HasError() || req.State.GetAttribute(ctx, at, &before).HasError() {
		return false // it has none
	}
	return !planned.Equal(before)
}

// secret is a password that only the state has.
func secret(text string) schema.StringAttribute {
	return schema.StringAttribute{
		Computed: true, Sensitive: true, MarkdownDescription: text,
		PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}
