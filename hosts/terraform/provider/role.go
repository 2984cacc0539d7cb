package provider

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	core "github.com/pgherd/pgherd/core/role"
)

type roleModel struct {
	timed

	ID              types.String `tfsdk:"id"`
	DatabaseID      types.String `tfsdk:"database_id"`
	DisplayName     types.String `tfsdk:"display_name"`
	AccessProfile   types.String `tfsdk:"access_profile"`
	ConnectionLimit types.Int64  `tfsdk:"connection_limit"`
	Rotation        types.String `tfsdk:"rotation"`
	IdempotencyKey  types.String `tfsdk:"idempotency_key"`
	RotationKey     types.String `tfsdk:"rotation_key"`
	Username        types.String `tfsdk:"username"`
	Status          types.String `tfsdk:"status"`
}

func (m roleModel) id() id.RoleID { return id.RoleID(m.ID.ValueString()) }

var role = kind[roleModel]{
	name: "role",
	schema: schema.Schema{
		MarkdownDescription: "An additional login of a database with managed logins. Its password is in `pgherd_role_password`, " +
			"which puts none into the state. One that was revoked, or has expired, is replaced.",
		Attributes: map[string]schema.Attribute{
			"id":          computedID("role"),
			"database_id": ofDatabase(),
			"display_name": schema.StringAttribute{
				Required: true, MarkdownDescription: "1 to 64 characters, unique in the database.",
				Validators: []validator.String{like(core.ValidateDisplayName)},
			},
			"access_profile": fixed(true, "`read_only`, `read_write`, or `custom` for what the owner grants.",
				like(core.ParseAccessProfile)),
			"connection_limit": schema.Int64Attribute{
				Required: true, MarkdownDescription: "How many connections to the server it can have at once. A change makes a new one.",
				PlanModifiers: []planmodifier.Int64{int64planmodifier.RequiresReplace()},
			},
			"rotation": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Any text, such as a date: with another one the password is rotated, which closes " +
					"the role's connections.",
			},
			"idempotency_key": key("taken as it is"),
			"rotation_key": schema.StringAttribute{
				Computed: true, MarkdownDescription: "The key of its last rotation, so that one which was interrupted goes on.",
				PlanModifiers: []planmodifier.String{nextKey{}},
			},
			"username": told("To log in with."),
			"status": schema.StringAttribute{
				Computed: true, MarkdownDescription: "`ready` where it can log in.", PlanModifiers: []planmodifier.String{anew{}},
			},
		},
	},
	database: func(m roleModel) types.String { return m.DatabaseID },
	limit:    10 * time.Minute,
	guard: func(_ context.Context, s *service, before, planned *roleModel) error {
		if before != nil {
			return nil
		}
		return s.held.unspent("role", planned.DatabaseID, planned.IdempotencyKey)
	},
	made:   func(m roleModel) bool { return m.ID.ValueString() != "" },
	create: createRole,
	read: func(ctx context.Context, api *apiclient.Client, m *roleModel) error {
		return findRole(ctx, api, m, true, func(r wire.ListedRole) bool { return r.RoleID == m.id() })
	},
	update: updateRole,
	remove: func(ctx context.Context, api *apiclient.Client, m roleModel) error {
		for {
			now, err := api.Roles.Delete(ctx, databaseID(m.DatabaseID), m.id(), wire.DeleteRole{Confirm: true})
			if err != nil || now.Status == string(core.Removed) {
				return err
			}
			if err := wait(ctx); err != nil {
				return fmt.Errorf("it is still being removed: %w", err)
			}
		}
	},
	find: func(ctx context.Context, api *apiclient.Client, text string, m *roleModel) error {
		of, name, err := parts(ctx, api, text, "DATABASE/ROLE")
		if err != nil {
			return err
		}
		m.DatabaseID = types.StringValue(string(of))
		return findRole(ctx, api, m, false, func(r wire.ListedRole) bool { return r.DisplayName == name || string(r.RoleID) == name })
	},
}

// ended are the statuses of roles that never log in again. They keep their labels until they are removed.
var ended = []string{string(core.Revoked), string(core.Expired)}

// anew plans to replace a role that has ended.
type anew struct{}

// Description implements planmodifier.Describer.
func (anew) Description(context.Context) string { return "a role that has ended is replaced" }

// MarkdownDescription implements planmodifier.Describer.
func (a anew) MarkdownDescription(ctx context.Context) string { return a.Description(ctx) }

// PlanModifyString implements planmodifier.String.
func (anew) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	switch {
	case req.State.Raw.IsNull():
	case slices.Contains(ended, req.StateValue.ValueString()):
		resp.PlanValue, resp.RequiresReplace = types.StringUnknown(), true
	default:
		resp.PlanValue = req.StateValue
	}
}

// findRole fills in a role of the model's database.
func findRole(
	ctx context.Context, api *apiclient.Client, m *roleModel, includeRevoked bool, is func(wire.ListedRole) bool,
) error {
	list, err := api.Roles.List(ctx, databaseID(m.DatabaseID), includeRevoked)
	for _, r := range list {
		if is(r) {
			m.take(r.Role)
			return nil
		}
	}
	return missing(err)
}

func (m *roleModel) take(r wire.Role) {
	m.ID, m.Username = types.StringValue(string(r.RoleID)), types.StringValue(r.Username)
	m.DisplayName, m.AccessProfile = types.StringValue(r.DisplayName), types.StringValue(string(r.AccessProfile))
	m.ConnectionLimit, m.Status = types.Int64Value(int64(r.ConnectionLimit)), types.StringValue(string(r.Status))
}

func createRole(ctx context.Context, api *apiclient.Client, m *roleModel) error {
	of := databaseID(m.DatabaseID)
	m.IdempotencyKey = chosen(m.IdempotencyKey)
	m.RotationKey = m.IdempotencyKey
	r, err := answered(ctx, func(ctx context.Context) (wire.Role, error) {
		return api.Roles.Create(ctx, of, wire.CreateRole{
			DisplayName: m.DisplayName.ValueString(), AccessProfile: core.AccessProfile(m.AccessProfile.ValueString()),
			ConnectionLimit: int(m.ConnectionLimit.ValueInt64()),
		}, apiclient.IdempotencyKey(m.IdempotencyKey.ValueString()))
	})
	if apiclient.Unanswered(err) || codeOf(err) == fault.AgentError {
		return maybeMade(err, m.IdempotencyKey)
	}
	if err != nil {
		return err
	}
	m.take(r)
	for core.Status(m.Status.ValueString()) != core.Ready { // what was interrupted goes on
		var now wire.RoleSetup
		switch r.Status = core.Status(m.Status.ValueString()); r.Status { // from nothing else a creation goes on
		case core.Reserved:
			now, err = api.Roles.Prepare(ctx, of, r.RoleID)
		case core.SQLReady:
			now, err = api.Roles.Admit(ctx, of, r.RoleID)
		default:
			return fmt.Errorf("it was made, and is %s", r.Status)
		}
		if err != nil {
			return err
		}
		m.Status = types.StringValue(string(now.Status))
	}
	return nil
}

func updateRole(ctx context.Context, api *apiclient.Client, m *roleModel, before roleModel) error {
	of := databaseID(m.DatabaseID)
	if !m.DisplayName.Equal(before.DisplayName) {
		if _, err := api.Roles.Rename(ctx, of, m.id(), wire.RenameRole{DisplayName: m.DisplayName.ValueString()}); err != nil {
			return err
		}
	}
	if !rotates(m.Rotation, before.Rotation) {
		return nil
	}
	key := apiclient.IdempotencyKey(m.RotationKey.ValueString())
	change, err := api.Roles.Change(ctx, of, m.id(), wire.ChangeRole{Kind: core.Rotation, ConfirmDisconnect: true}, key)
	for err == nil && change.Status != core.Completed {
		if err = wait(ctx); err == nil {
			change, err = api.Roles.ContinueChange(ctx, of, m.id(), change.OperationID, wire.Disconnect{ConfirmDisconnect: true})
		}
	}
	return err
}
