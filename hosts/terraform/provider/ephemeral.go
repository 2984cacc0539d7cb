package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	core "github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// revelation is a password that Terraform asks for each time, and keeps neither in a plan nor in the state.
type revelation[M any] struct {
	name   string
	schema schema.Schema
	reveal func(ctx context.Context, api *apiclient.Client, m *M) error
}

type revealer[M any] struct {
	revelation[M]

	api *service
}

var _ ephemeral.EphemeralResourceWithConfigure = (*revealer[struct{}])(nil)

func revealing[M any](r revelation[M]) func() ephemeral.EphemeralResource {
	return func() ephemeral.EphemeralResource { return &revealer[M]{revelation: r} }
}

// Metadata implements ephemeral.EphemeralResource.
func (r *revealer[M]) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + r.name
}

// Schema implements ephemeral.EphemeralResource.
func (r *revealer[M]) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = r.schema
}

// Configure implements ephemeral.EphemeralResourceWithConfigure.
func (r *revealer[M]) Configure(_ context.Context, req ephemeral.ConfigureRequest, _ *ephemeral.ConfigureResponse) {
	r.api, _ = req.ProviderData.(*service) // nil while Terraform only validates
}

// Open implements ephemeral.EphemeralResource.
func (r *revealer[M]) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m M
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, briefly)
	defer cancel()
	err := r.reveal(ctx, r.api.Client, &m)
	tell(&resp.Diagnostics, "It cannot be revealed", err, func(name string) bool { return r.schema.Attributes[name] != nil })
	if err == nil {
		resp.Diagnostics.Append(resp.Result.Set(ctx, &m)...)
	}
}

// credential is how to log in.
type credential struct {
	Host     types.String `tfsdk:"host"`
	Port     types.Int64  `tfsdk:"port"`
	Database types.String `tfsdk:"database"`
	Username types.String `tfsdk:"username"`
	Password types.String `tfsdk:"password"`
}

func (c *credential) take(username string, by wire.Credential) {
	c.Host, c.Port, c.Database = types.StringValue(by.Host), types.Int64Value(int64(by.Port)), types.StringValue(by.Database)
	c.Username, c.Password = types.StringValue(username), types.StringValue(by.Password)
}

func revealed(text string, of map[string]schema.Attribute) schema.Schema {
	for name, what := range map[string]string{
		"host": "Host to connect to.", "database": "Database to connect to.", "username": "To log in with.",
	} {
		of[name] = schema.StringAttribute{Computed: true, MarkdownDescription: what}
	}
	of["port"] = schema.Int64Attribute{Computed: true, MarkdownDescription: "Port to connect to, with TLS."}
	of["password"] = schema.StringAttribute{Computed: true, Sensitive: true, MarkdownDescription: "To log in with."}
	return schema.Schema{MarkdownDescription: text + " The activity log of the database records each time.", Attributes: of}
}

type rolePasswordModel struct {
	credential

	DatabaseID types.String `tfsdk:"database_id"`
	RoleID     types.String `tfsdk:"role_id"`
}

var rolePassword = revelation[rolePasswordModel]{
	name: "role_password",
	schema: revealed("How an additional role logs in.", map[string]schema.Attribute{
		"database_id": schema.StringAttribute{Required: true, MarkdownDescription: "ID of the database."},
		"role_id":     schema.StringAttribute{Required: true, MarkdownDescription: "ID of the role."},
	}),
	reveal: func(ctx context.Context, api *apiclient.Client, m *rolePasswordModel) error {
		r, err := api.Roles.Reveal(ctx, databaseID(m.DatabaseID), id.RoleID(m.RoleID.ValueString()))
		m.take(r.Username, r.Credential)
		return err
	},
}

type loginPasswordModel struct {
	credential

	DatabaseID types.String `tfsdk:"database_id"`
	Login      types.String `tfsdk:"login"`
}

var loginPassword = revelation[loginPasswordModel]{
	name: "login_password",
	schema: revealed("How a login that a database was made with logs in.", map[string]schema.Attribute{
		"database_id": schema.StringAttribute{Required: true, MarkdownDescription: "ID of the database."},
		"login":       schema.StringAttribute{Required: true, MarkdownDescription: "`runtime` or `readonly`."},
	}),
	reveal: func(ctx context.Context, api *apiclient.Client, m *loginPasswordModel) error {
		l, err := api.Logins.Reveal(ctx, databaseID(m.DatabaseID), core.Login(m.Login.ValueString()))
		m.take(l.Username, l.Credential)
		return err
	},
}
