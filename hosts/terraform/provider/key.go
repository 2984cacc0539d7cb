package provider

import (
	"cmp"
	"context"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// chosen is the idempotency key that a thing is asked for with, or a new one. It is not planned: Terraform plans twice, before
// and while it applies, and wants the same plan.
func chosen(key types.String) types.String {
	return types.StringValue(cmp.Or(key.ValueString(), uuid.NewString()))
}

// nextKey plans the key of a rotation. It follows from the key before and the text that the rotation hangs on, so a rotation that
// was interrupted goes on where it is applied again.
type nextKey struct{}

// Description implements planmodifier.Describer.
func (nextKey) Description(context.Context) string { return "a rotation has another key" }

// MarkdownDescription implements planmodifier.Describer.
func (n nextKey) MarkdownDescription(ctx context.Context) string { return n.Description(ctx) }

// PlanModifyString implements planmodifier.String.
func (nextKey) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.State.Raw.IsNull() { // it is made, and so is its key
		return
	}
	var before, planned, of types.String
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("rotation"), &planned)...)
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("rotation"), &before)...)
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("id"), &of)...)
	switch {
	case planned.IsUnknown():
		resp.PlanValue = types.StringUnknown()
	case rotates(planned, before):
		from := of.ValueString() + "\n" + req.StateValue.ValueString() + "\n" + planned.ValueString()
		resp.PlanValue = types.StringValue(uuid.NewSHA1(uuid.NameSpaceOID, []byte(from)).String())
	default:
		resp.PlanValue = req.StateValue
	}
}

// rotates reports whether a rotation hangs on a change of a text. To leave the text out is none.
func rotates(planned, before types.String) bool { return !planned.IsNull() && !planned.Equal(before) }
