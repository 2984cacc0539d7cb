package provider

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// chosen is the idempotency key that a thing is asked for with, or a new one. A new one is not planned: Terraform plans twice,
// before and while it applies, and wants the same plan. Nor is it one that follows from what is asked for: another configuration
// that asks for the same would be given what belongs to this one.
func chosen(key types.String) types.String {
	return types.StringValue(cmp.Or(key.ValueString(), uuid.NewString()))
}

// maybeMade is the error of a request that makes something, and may have made it or be at it still.
func maybeMade(err error, key types.String) error {
	return fmt.Errorf("%w. With idempotency_key = %q, the next apply takes what was made", err, key.ValueString())
}

// once plans a secret that is told once: it stays, or until the attribute rotation has another text, and is null where the
// attribute kept is false.
type once struct{ kept, rotation string }

// Description implements planmodifier.Describer.
func (once) Description(context.Context) string { return "it stays until it is rotated" }

// MarkdownDescription implements planmodifier.Describer.
func (o once) MarkdownDescription(ctx context.Context) string { return o.Description(ctx) }

// PlanModifyString implements planmodifier.String.
func (o once) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	var kept types.Bool
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root(o.kept), &kept)...)
	anew := req.State.Raw.IsNull()
	if !anew && o.rotation != "" {
		var before, planned types.String
		resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root(o.rotation), &planned)...)
		resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root(o.rotation), &before)...)
		anew = rotates(planned, before)
		if anew && kept.Equal(types.BoolValue(false)) {
			resp.Diagnostics.AddAttributeError(path.Root(o.rotation), "Nobody would have the secret",
				"The state is to have none, and nothing else tells the one that a rotation makes.")
		}
	}
	switch {
	case kept.IsUnknown(): // the secret stays unknown with it
	case kept.Equal(types.BoolValue(false)):
		resp.PlanValue = types.StringNull()
	case !anew:
		resp.PlanValue = req.StateValue
	}
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
