package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
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
	timed

	ID                 types.String `tfsdk:"id"`
	Name               types.String `tfsdk:"name"`
	DisplayName        types.String `tfsdk:"display_name"`
	RoleModel          types.String `tfsdk:"role_model"`
	PostgresVersion    types.Int64  `tfsdk:"postgres_version"`
	Environment        types.String `tfsdk:"environment"`
	Running            types.Bool   `tfsdk:"running"`
	Status             types.String `tfsdk:"status"`
	DeletionProtection types.Bool   `tfsdk:"deletion_protection"`
	IdempotencyKey     types.String `tfsdk:"idempotency_key"`
	Host               types.String `tfsdk:"host"`
	Port               types.Int64  `tfsdk:"port"`
	Username           types.String `tfsdk:"username"`
	PasswordInState    types.Bool   `tfsdk:"password_in_state"`
	Password           types.String `tfsdk:"password"`
	ConnectionString   types.String `tfsdk:"connection_string"`
	CreatedAt          types.String `tfsdk:"created_at"`
}

var database = kind[databaseModel]{
	name: "database",
	schema: schema.Schema{
		MarkdownDescription: "A database. A plan deletes it only where `deletion_protection` is false in the state. Until it is " +
			"purged, `svc databases recover` brings it back, and its name is taken: only one of another name replaces it.",
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
			"postgres_version": schema.Int64Attribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Major version of PostgreSQL: 16, 17 or 18; the account's default if not set. A change makes a new one.",
				PlanModifiers: []planmodifier.Int64{
					int64planmodifier.UseStateForUnknown(), int64planmodifier.RequiresReplaceIfConfigured(),
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
			"status": schema.StringAttribute{
				Computed: true, PlanModifiers: []planmodifier.String{following{}},
				MarkdownDescription: "`active` or `stopped`; `error`, with a warning, where the service failed to stop or start it.",
			},
			"idempotency_key": key("its password is told for 24 hours"),
			"host":            told("Host to connect to."),
			"port": schema.Int64Attribute{
				Computed: true, MarkdownDescription: "Port to connect to.",
				PlanModifiers: []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
			},
			"username": told("The owner's login."),
			"password_in_state": inState("password of the owner",
				"Then `svc managed logins-rotate DATABASE owner` makes one for whoever needs it."),
			"password": secret(ownerPassword, "The owner's password, as it was when the database was made. Nothing tells it again: null "+
				"after an import."),
			"connection_string": secret(ownerPassword, "How the owner connects, with that password; null after an import. Applications "+
				"better use a login of their own: see `pgherd_login_password` and `pgherd_role_password`, which put none into the state."),
			"created_at": told("When it was made."),
		},
	},
	database: func(m databaseModel) types.String { return m.ID },
	limit:    20 * time.Minute,
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
	notice: func(m databaseModel) string {
		if m.Status.ValueString() != string(core.Error) {
			return ""
		}
		return "The database " + m.Name.ValueString() + " is in status error: the service failed to stop or start it, and tries " +
			`it again. "svc operations list" says more`
	},
	update: updateDatabase,
	remove: func(ctx context.Context, api *apiclient.Client, m databaseModel) error {
		if err := m.mayGo(); err != nil { // whatever was planned
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

// ownerPassword is how the attributes are planned that have the owner's password.
var ownerPassword = once{kept: "password_in_state"}

// following plans a status, which may change with "running" and stays else.
type following struct{}

// Description implements planmodifier.Describer.
func (following) Description(context.Context) string { return "starting and stopping change it" }

// MarkdownDescription implements planmodifier.Describer.
func (f following) MarkdownDescription(ctx context.Context) string { return f.Description(ctx) }

// PlanModifyString implements planmodifier.String.
func (following) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.State.Raw.IsNull() {
		return
	}
	var before, planned types.Bool
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("running"), &before)...)
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("running"), &planned)...)
	if planned.Equal(before) {
		resp.PlanValue = req.StateValue
	}
}

// guardDatabase refuses a plan that would lose a database. What belongs to it goes before it, so only the plan can refuse that:
// without its allowlist, a database is open to everybody.
func guardDatabase(ctx context.Context, s *service, before, planned *databaseModel) error {
	switch {
	case before == nil:
		return isFree(ctx, s, *planned)
	case planned == nil || !planned.Name.Equal(before.Name):
		return before.mayGo()
	case !planned.DisplayName.Equal(before.DisplayName) || !planned.RoleModel.Equal(before.RoleModel),
		!planned.PostgresVersion.Equal(before.PostgresVersion):
		return errNameStays
	}
	return nil
}

var errNameStays = errors.New("a database keeps its name until it is purged, some time after its deletion: it cannot be " +
	`replaced by one of the same name. What Terraform holds for tainted is kept by "terraform untaint"`)

// mayGo refuses to delete a database that is protected.
func (m databaseModel) mayGo() error {
	if !m.DeletionProtection.ValueBool() {
		return nil
	}
	return errors.New("deletion_protection is true: set it to false, apply that, and delete or replace the database then")
}

// isFree refuses to plan a database whose name is that of one that is there: of one that the state has, which would have to go
// for it, or of another. One that an interrupted apply has made is taken by the key that it was asked for with.
func isFree(ctx context.Context, s *service, m databaseModel) error {
	if err := s.held.unspent("database", types.StringNull(), m.IdempotencyKey); err != nil {
		return err
	}
	if m.Name.IsUnknown() {
		return nil
	}
	for db, err := range s.Databases.List().All(ctx) {
		switch {
		case err != nil:
			return err
		case db.Name != m.Name.ValueString():
		case s.held.has("database", func(o object) bool { return o.ID == string(db.ID) }):
			return errNameStays
		case m.IdempotencyKey.IsUnknown():
			return fmt.Errorf("a database called %q is there already, made at %s: \"terraform import\" takes it. One that was made by "+
				"an apply which was interrupted is also taken with the idempotency_key of that",
				db.Name, db.CreatedAt.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// take fills in what the API tells at any time.
func (m *databaseModel) take(d wire.Database) {
	m.ID, m.Name, m.DisplayName = types.StringValue(string(d.ID)), types.StringValue(d.Name), types.StringValue(d.DisplayName)
	m.Host, m.Port, m.Username = types.StringValue(d.Host), types.Int64Value(int64(d.Port)), types.StringValue(d.Username)
	m.PostgresVersion = types.Int64Value(int64(d.PostgresVersion))
	m.CreatedAt = types.StringValue(d.CreatedAt.UTC().Format(time.RFC3339Nano))
	m.Environment = types.StringPointerValue((*string)(d.Environment))
	m.Running, m.Status = types.BoolValue(d.Status != core.Stopped), types.StringValue(string(d.Status))
}

func createDatabase(ctx context.Context, api *apiclient.Client, m *databaseModel) error {
	ask := wire.CreateDatabase{Name: m.Name.ValueString(), DisplayName: m.DisplayName.ValueString()}
	if model := m.RoleModel.ValueString(); model != "" {
		ask.RoleModel = new(core.RoleModel(model))
	}
	if version := m.PostgresVersion.ValueInt64(); version != 0 {
		ask.PostgresVersion = new(int(version))
	}
	if label := m.Environment.ValueString(); label != "" {
		ask.Environment = new(core.Environment(label))
	}
	m.IdempotencyKey = chosen(m.IdempotencyKey)
	d, err := answered(ctx, func(ctx context.Context) (wire.CreatedDatabase, error) {
		return created(ctx, api, ask, m.IdempotencyKey)
	})
	if err != nil {
		return err
	}
	running := m.Running
	m.take(d.Database)
	m.Password, m.ConnectionString = unless(m.PasswordInState, d.Password), unless(m.PasswordInState, d.ConnectionString)
	if m.RoleModel.IsUnknown() {
		m.RoleModel = types.StringValue(string(core.Managed))
	}
	if d.Status != core.Active && d.Status != core.Stopped { // an interrupted apply may have stopped it
		return fmt.Errorf("it was made, and is %s", d.Status)
	}
	return setRunning(ctx, api, m, running)
}

// created makes a database. The service answers when it can be connected to; where that takes longer than a request may, it says
// so, and the same request asks for the rest.
func created(
	ctx context.Context, api *apiclient.Client, ask wire.CreateDatabase, key types.String,
) (wire.CreatedDatabase, error) {
	for {
		d, err := api.Databases.Create(ctx, ask, apiclient.IdempotencyKey(key.ValueString()))
		if apiclient.Unanswered(err) {
			return d, maybeMade(err, key)
		}
		if codeOf(err) != fault.AgentError {
			return d, err
		}
		begun, none := databaseCalled(ctx, api, ask.Name)
		if none != nil || begun.Status != core.Creating {
			return d, err
		}
		if wait(ctx) != nil {
			return d, maybeMade(err, key)
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
	m.Running, m.Status = before.Running, before.Status
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
	now, err := api.Databases.SetLifecycle(ctx, databaseID(m.ID), wire.SetLifecycle{Action: action})
	if err == nil {
		m.Running, m.Status = wanted, types.StringValue(string(now.Status))
	}
	return err
}
