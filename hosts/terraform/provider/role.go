package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	core "github.com/pgherd/pgherd/core/role"
)

type roleModel struct {
	ID              types.String `tfsdk:"id"`
	DatabaseID      types.String `tfsdk:"database_id"`
	DisplayName     types.String `tfsdk:"display_name"`
	AccessProfile   types.String `tfsdk:"access_profile"`
	ConnectionLimit types.Int64  `tfsdk:"connection_limit"`
	Rotation        types.String `tfsdk:"rotation"`
	Timeout         types.String `tfsdk:"timeout"`
	IdempotencyKey  types.String `tfsdk:"idempotency_key"`
	Username        types.String `tfsdk:"username"`
}

func (m roleModel) id() id.RoleID { return id.RoleID(m.ID.ValueString()) }

var role = kind[roleModel]{
	name: "role",
	schema: schema.Schema{
		MarkdownDescription: "An additional login of a database with managed logins. Its password is in `pgherd_role_password`, " +
			"which puts none into the state.",
		Attributes: map[string]schema.Attribute{
			"id":             computedID("role"),
			"database_id":    ofDatabase(),
			"display_name":   schema.StringAttribute{Required: true, MarkdownDescription: "1 to 64 characters, unique in the database."},
			"access_profile": fixed(true, "`read_only`, `read_write`, or `custom` for what the owner grants."),
			"connection_limit": schema.Int64Attribute{
				Required: true, MarkdownDescription: "How many connections to the server it can have at once. A change makes a new one.",
				PlanModifiers: []planmodifier.Int64{int64planmodifier.RequiresReplace()},
			},
			"rotation": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Any text, such as a date: with another one the password is rotated, which closes " +
					"the role's connections.",
			},
			"timeout":         timeout("10 minutes"),
			"idempotency_key": idempotencyKey(),
			"username":        told("To log in with."),
		},
	},
	made:   func(m roleModel) bool { return m.ID.ValueString() != "" },
	create: createRole,
	read: func(ctx context.Context, api *apiclient.Client, m *roleModel) error {
		list, err := api.Roles.List(ctx, databaseID(m.DatabaseID), false)
		for _, r := range list {
			if r.RoleID == m.id() {
				m.take(r.Role)
				return nil
			}
		}
		return errors.Join(err, missing(err))
	},
	update: updateRole,
	remove: func(ctx context.Context, api *apiclient.Client, m roleModel) error {
		ctx, cancel := within(ctx, m.Timeout, 10*time.Minute)
		defer cancel()
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
		list, err := api.Roles.List(ctx, of, false)
		for _, r := range list {
			if r.DisplayName == name || string(r.RoleID) == name {
				m.DatabaseID = types.StringValue(string(of))
				m.take(r.Role)
				return nil
			}
		}
		return errors.Join(err, missing(err))
	},
}

// missing is errGone where a list was read and had no such thing.
func missing(err error) error {
	if err != nil {
		return nil
	}
	return errGone
}

func (m *roleModel) take(r wire.Role) {
	m.ID, m.Username = types.StringValue(string(r.RoleID)), types.StringValue(r.Username)
	m.DisplayName, m.AccessProfile = types.StringValue(r.DisplayName), types.StringValue(string(r.AccessProfile))
	m.ConnectionLimit = types.Int64Value(int64(r.ConnectionLimit))
}

func createRole(ctx context.Context, api *apiclient.Client, m *roleModel) error {
	ctx, cancel := within(ctx, m.Timeout, 10*time.Minute)
	defer cancel()
	r, err := api.Roles.Create(ctx, databaseID(m.DatabaseID), wire.CreateRole{
		DisplayName: m.DisplayName.ValueString(), AccessProfile: core.AccessProfile(m.AccessProfile.ValueString()),
		ConnectionLimit: int(m.ConnectionLimit.ValueInt64()),
	}, apiclient.IdempotencyKey(m.IdempotencyKey.ValueString()))
	if err != nil {
		return err
	}
	m.take(r)
	status := r.Status
	for status != core.Ready { // what was interrupted goes on
		var now wire.RoleSetup
		switch status { //nolint:exhaustive // what else there is, no creation goes on from
		case core.Reserved:
			now, err = api.Roles.Prepare(ctx, databaseID(m.DatabaseID), r.RoleID)
		case core.SQLReady:
			now, err = api.Roles.Admit(ctx, databaseID(m.DatabaseID), r.RoleID)
		default:
			return fmt.Errorf("it was made, and is %s", status)
		}
		if err != nil {
			return err
		}
		status = now.Status
	}
	return nil
}

func updateRole(ctx context.Context, api *apiclient.Client, m *roleModel, before roleModel) error {
	ctx, cancel := within(ctx, m.Timeout, 10*time.Minute)
	defer cancel()
	of := databaseID(m.DatabaseID)
	if !m.DisplayName.Equal(before.DisplayName) {
		if _, err := api.Roles.Rename(ctx, of, m.id(), wire.RenameRole{DisplayName: m.DisplayName.ValueString()}); err != nil {
			return err
		}
	}
	if m.Rotation.Equal(before.Rotation) || m.Rotation.IsNull() {
		return nil
	}
	key := apiclient.IdempotencyKey(m.IdempotencyKey.ValueString()) // planned with the change: what is interrupted goes on
	change, err := api.Roles.Change(ctx, of, m.id(), wire.ChangeRole{Kind: core.Rotation, ConfirmDisconnect: true}, key)
	for err == nil && change.Status != core.Completed {
		if err = wait(ctx); err == nil {
			change, err = api.Roles.ContinueChange(ctx, of, m.id(), change.OperationID, wire.Disconnect{ConfirmDisconnect: true})
		}
	}
	return err
}
