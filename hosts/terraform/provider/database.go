package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	core "github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
)

type databaseModel struct {
	ID                 types.String `tfsdk:"id"`
	Name               types.String `tfsdk:"name"`
	DisplayName        types.String `tfsdk:"display_name"`
	RoleModel          types.String `tfsdk:"role_model"`
	Environment        types.String `tfsdk:"environment"`
	Running            types.Bool   `tfsdk:"running"`
	DeletionProtection types.Bool   `tfsdk:"deletion_protection"`
	Timeout            types.String `tfsdk:"timeout"`
	IdempotencyKey     types.String `tfsdk:"idempotency_key"`
	Host               types.String `tfsdk:"host"`
	Port               types.Int64  `tfsdk:"port"`
	Username           types.String `tfsdk:"username"`
	Password           types.String `tfsdk:"password"`
	ConnectionString   types.String `tfsdk:"connection_string"`
	CreatedAt          types.String `tfsdk:"created_at"`
}

var database = kind[databaseModel]{
	name: "database",
	schema: schema.Schema{
		MarkdownDescription: "A database. A plan deletes or replaces it only where `deletion_protection` is false in the state. It " +
			"can be recovered by `svc databases recover` until it is purged.",
		Attributes: map[string]schema.Attribute{
			"id":           computedID("database"),
			"name":         fixed(true, "3 to 50 lowercase letters, digits and hyphens.", accepted(core.ValidateChosenName)),
			"display_name": fixed(true, "1 to 64 characters.", like(core.ValidateDisplayName)),
			"role_model": schema.StringAttribute{
				Optional: true, Computed: true, Validators: []validator.String{like(core.ParseRoleModel)},
				MarkdownDescription: "`managed`, with three logins and additional roles, or `single_login`; `managed` if not set. A " +
					"change makes a new one.",
				PlanModifiers: []planmodifier.String{
					stringplanmodifier.UseStateForUnknown(), stringplanmodifier.RequiresReplaceIfConfigured(),
				},
			},
			"environment": schema.StringAttribute{
				Optional: true, MarkdownDescription: "`development`, `staging`, `production` or `other`.",
				Validators: []validator.String{like(core.ParseEnvironment)},
			},
			"running": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(true),
				MarkdownDescription: "Whether it may be connected to; true if not set. Setting it to false stops the database.",
			},
			"deletion_protection": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(true),
				MarkdownDescription: "Whether deleting it is refused; true if not set. Terraform's own, so it has to be applied first.",
			},
			"timeout":         timeout("20 minutes"),
			"idempotency_key": told("The key that it was asked for with."),
			"host":            told("Host to connect to."),
			"port": schema.Int64Attribute{
				Computed: true, MarkdownDescription: "Port to connect to.",
				PlanModifiers: []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
			},
			"username": told("The owner's login."),
			"password": secret(
				"The owner's password, as it was when the database was made. Nothing tells it again: null after an import."),
			"connection_string": secret(
				"How the owner connects, with that password; null after an import. Applications better use a login of " +
					"their own: see `pgherd_login_password` and `pgherd_role_password`, which put none into the state."),
			"created_at": told("When it was made."),
		},
	},
	database: func(m databaseModel) types.String { return m.ID },
	limit:    20 * time.Minute,
	timeout:  func(m databaseModel) types.String { return m.Timeout },
	guard:    guardDatabase,
	made:     func(m databaseModel) bool { return m.ID.ValueString() != "" },
	create:   createDatabase,
	read: func(ctx context.Context, api *apiclient.Client, m *databaseModel) error {
		now, err := api.Databases.Get(ctx, databaseID(m.ID))
		if err == nil && now.Status == core.Deleting {
			return errGone
		}
		if err == nil {
			m.take(now)
		}
		return err
	},
	update: updateDatabase,
	remove: func(ctx context.Context, api *apiclient.Client, m databaseModel) error {
		if err := guardDatabase(m, nil); err != nil { // it may be tainted, of which no plan tells
			return err
		}
		asked, err := api.Databases.Delete(ctx, databaseID(m.ID))
		if err != nil {
			return err
		}
		return ends(ctx, api, asked.Operation)
	},
	find: func(ctx context.Context, api *apiclient.Client, given string, m *databaseModel) error {
		found, err := databaseCalled(ctx, api, given)
		if err != nil {
			return err
		}
		logins, err := api.Logins.List(ctx, found.ID)
		if err != nil {
			return err
		}
		m.RoleModel = types.StringValue(string(core.SingleLogin))
		if len(logins) > 1 {
			m.RoleModel = types.StringValue(string(core.Managed))
		}
		m.DeletionProtection = types.BoolValue(true)
		m.take(found)
		return nil
	},
}

// guardDatabase refuses to lose a database that is protected.
func guardDatabase(m databaseModel, planned *databaseModel) error {
	stays := planned != nil && planned.Name.Equal(m.Name) && planned.DisplayName.Equal(m.DisplayName) &&
		planned.RoleModel.Equal(m.RoleModel)
	if stays || !m.DeletionProtection.ValueBool() {
		return nil
	}
	return errors.New("deletion_protection is true: set it to false, apply that, and delete or replace the database then")
}

// take fills in what the API tells at any time.
func (m *databaseModel) take(d wire.Database) {
	m.ID, m.Name, m.DisplayName = types.StringValue(string(d.ID)), types.StringValue(d.Name), types.StringValue(d.DisplayName)
	m.Host, m.Port, m.Username = types.StringValue(d.Host), types.Int64Value(int64(d.Port)), types.StringValue(d.Username)
	m.CreatedAt = types.StringValue(d.CreatedAt.UTC().Format(time.RFC3339Nano))
	m.Environment = types.StringPointerValue((*string)(d.Environment))
	m.Running = types.BoolValue(d.Status != core.Stopped)
}

func createDatabase(ctx context.Context, api *apiclient.Client, m *databaseModel) error {
	ask := wire.CreateDatabase{Name: m.Name.ValueString(), DisplayName: m.DisplayName.ValueString()}
	if model := m.RoleModel.ValueString(); model != "" {
		ask.RoleModel = new(core.RoleModel(model))
	}
	if label := m.Environment.ValueString(); label != "" {
		ask.Environment = new(core.Environment(label))
	}
	m.IdempotencyKey = chosen(m.IdempotencyKey)
	d, err := answered(ctx, func(ctx context.Context) (wire.CreatedDatabase, error) {
		return created(ctx, api, ask, m.IdempotencyKey.ValueString())
	})
	if err != nil {
		return err
	}
	running := m.Running
	m.take(d.Database)
	m.Password, m.ConnectionString = given(d.Password), given(d.ConnectionString)
	if m.RoleModel.IsUnknown() {
		m.RoleModel = types.StringValue(string(core.Managed))
	}
	if d.Status != core.Active {
		return fmt.Errorf("it was made, and is %s", d.Status)
	}
	return setRunning(ctx, api, m, running)
}

// created makes a database. The service answers when it can be connected to; where that takes longer than a request may, it says
// so, and the same request asks for the rest.
func created(ctx context.Context, api *apiclient.Client, ask wire.CreateDatabase, key string) (wire.CreatedDatabase, error) {
	for {
		d, err := api.Databases.Create(ctx, ask, apiclient.IdempotencyKey(key))
		if codeOf(err) != fault.AgentError {
			return d, err
		}
		begun, none := databaseCalled(ctx, api, ask.Name)
		if none != nil || begun.Status != core.Creating || wait(ctx) != nil {
			return d, err
		}
	}
}

func updateDatabase(ctx context.Context, api *apiclient.Client, m *databaseModel, before databaseModel) error {
	if !m.Environment.Equal(before.Environment) {
		label := (*core.Environment)(m.Environment.ValueStringPointer())
		if _, err := api.Databases.SetEnvironment(ctx, databaseID(m.ID), wire.SetEnvironment{Environment: label}); err != nil {
			return err
		}
	}
	running := m.Running
	m.Running = before.Running
	return setRunning(ctx, api, m, running)
}

// setRunning starts or stops a database that is not as wanted.
func setRunning(ctx context.Context, api *apiclient.Client, m *databaseModel, wanted types.Bool) error {
	if wanted.ValueBool() == m.Running.ValueBool() {
		return nil
	}
	action := core.Stop
	if wanted.ValueBool() {
		action = core.Start
	}
	_, err := api.Databases.SetLifecycle(ctx, databaseID(m.ID), wire.SetLifecycle{Action: action})
	if err == nil {
		m.Running = wanted
	}
	return err
}

// given is a text that is there; else null.
func given(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}
