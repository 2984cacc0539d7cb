package provider

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// source is a data source: what it is called and has, and how it is read. M is its model.
type source[M any] struct {
	name   string
	schema schema.Schema
	read   func(ctx context.Context, api *apiclient.Client, m *M) error
}

type looker[M any] struct {
	source[M]

	api *service
}

var _ datasource.DataSourceWithConfigure = (*looker[struct{}])(nil)

func looked[M any](s source[M]) func() datasource.DataSource {
	return func() datasource.DataSource { return &looker[M]{source: s} }
}

// Metadata implements datasource.DataSource.
func (l *looker[M]) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + l.name
}

// Schema implements datasource.DataSource.
func (l *looker[M]) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = l.schema
}

// Configure implements datasource.DataSourceWithConfigure.
func (l *looker[M]) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	l.api, _ = req.ProviderData.(*service) // nil while Terraform only validates
}

// Read implements datasource.DataSource.
func (l *looker[M]) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m M
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, briefly)
	defer cancel()
	err := l.read(ctx, l.api.Client, &m)
	if errors.Is(err, errGone) {
		err = errors.New("there is no such " + strings.ReplaceAll(l.name, "_", " "))
	}
	tell(&resp.Diagnostics, "It cannot be read", err, func(name string) bool { return l.schema.Attributes[name] != nil })
	if err == nil {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

func wanted(text string) schema.StringAttribute {
	return schema.StringAttribute{Required: true, MarkdownDescription: text}
}

// either is what a thing may be found by.
func either(text string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: text}
}

func shown(text string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: text}
}

func number(text string) schema.Int64Attribute {
	return schema.Int64Attribute{Computed: true, MarkdownDescription: text}
}

type databaseFacts struct {
	ID              types.String `tfsdk:"id"`
	Name            types.String `tfsdk:"name"`
	DisplayName     types.String `tfsdk:"display_name"`
	Environment     types.String `tfsdk:"environment"`
	Status          types.String `tfsdk:"status"`
	Host            types.String `tfsdk:"host"`
	Port            types.Int64  `tfsdk:"port"`
	Username        types.String `tfsdk:"username"`
	ScheduledBackup types.String `tfsdk:"scheduled_backup"`
	PostgresVersion types.Int64  `tfsdk:"postgres_version"`
	SizeBytes       types.Int64  `tfsdk:"size_bytes"`
}

var databaseSource = source[databaseFacts]{
	name: "database",
	schema: schema.Schema{
		MarkdownDescription: "A database, by its ID or its name.",
		Attributes: map[string]schema.Attribute{
			"id": either("ID of the database."), "name": either("Its name."), "display_name": shown("Its label."),
			"environment": shown("Its label, or null."), "status": shown("Such as `active` or `stopped`."),
			"host": shown("Host to connect to."), "port": number("Port to connect to."), "username": shown("The owner's login."),
			"scheduled_backup": shown("`daily` or `none`."), "size_bytes": number("The latest known size."),
			"postgres_version": number("Major version of PostgreSQL."),
		},
	},
	read: func(ctx context.Context, api *apiclient.Client, m *databaseFacts) error {
		if m.ID.IsNull() == m.Name.IsNull() {
			return errors.New("give id or name")
		}
		d, err := databaseCalled(ctx, api, m.ID.ValueString()+m.Name.ValueString())
		if err != nil {
			return err
		}
		*m = databaseFacts{
			ID: types.StringValue(string(d.ID)), Name: types.StringValue(d.Name), DisplayName: types.StringValue(d.DisplayName),
			Environment: types.StringPointerValue((*string)(d.Environment)), Status: types.StringValue(string(d.Status)),
			Host: types.StringValue(d.Host), Port: types.Int64Value(int64(d.Port)), Username: types.StringValue(d.Username),
			ScheduledBackup: types.StringValue(string(d.ScheduledBackup)), SizeBytes: types.Int64Value(d.SizeBytes),
			PostgresVersion: types.Int64Value(int64(d.PostgresVersion)),
		}
		return nil
	},
}

type roleFacts struct {
	DatabaseID      types.String `tfsdk:"database_id"`
	DisplayName     types.String `tfsdk:"display_name"`
	ID              types.String `tfsdk:"id"`
	AccessProfile   types.String `tfsdk:"access_profile"`
	ConnectionLimit types.Int64  `tfsdk:"connection_limit"`
	Username        types.String `tfsdk:"username"`
	Status          types.String `tfsdk:"status"`
}

var roleSource = source[roleFacts]{
	name: "role",
	schema: schema.Schema{
		MarkdownDescription: "An additional login of a database, by its label.",
		Attributes: map[string]schema.Attribute{
			"database_id": wanted("ID of the database."), "display_name": wanted("Its label."), "id": shown("ID of the role."),
			"access_profile":   shown("`read_only`, `read_write` or `custom`."),
			"connection_limit": number("Its connections to the server."),
			"username":         shown("To log in with."), "status": shown("`ready` where it can log in."),
		},
	},
	read: func(ctx context.Context, api *apiclient.Client, m *roleFacts) error {
		list, err := api.Roles.List(ctx, databaseID(m.DatabaseID), false)
		for _, r := range list {
			if r.DisplayName == m.DisplayName.ValueString() {
				m.ID, m.AccessProfile = types.StringValue(string(r.RoleID)), types.StringValue(string(r.AccessProfile))
				m.ConnectionLimit, m.Username = types.Int64Value(int64(r.ConnectionLimit)), types.StringValue(r.Username)
				m.Status = types.StringValue(string(r.Status))
				return nil
			}
		}
		return missing(err)
	},
}

var memberSource = source[memberFacts]{
	name: "member",
	schema: schema.Schema{
		MarkdownDescription: "A member of a database, or who is invited to it, by the mail address.",
		Attributes: map[string]schema.Attribute{
			"database_id": wanted("ID of the database."), "email": wanted("Mail address."),
			"role": shown("`admin`, `developer` or `viewer`."),
			"id":   shown("ID of the membership, or of the invitation."), "kind": shown("`member` or `invitation`."),
		},
	},
	read: func(ctx context.Context, api *apiclient.Client, m *memberFacts) error {
		return findMember(ctx, api, databaseID(m.DatabaseID), m.Email.ValueString(), m)
	},
}

type webhookFacts struct {
	ID                  types.String `tfsdk:"id"`
	URL                 types.String `tfsdk:"url"`
	DatabaseID          types.String `tfsdk:"database_id"`
	Enabled             types.Bool   `tfsdk:"enabled"`
	ConsecutiveFailures types.Int64  `tfsdk:"consecutive_failures"`
}

var webhookSource = source[webhookFacts]{
	name: "webhook",
	schema: schema.Schema{
		MarkdownDescription: "An endpoint that is sent events, by its ID.",
		Attributes: map[string]schema.Attribute{
			"id": wanted("ID of the endpoint."), "url": shown("Where events go."), "database_id": shown("Null: those of all databases."),
			"enabled":              schema.BoolAttribute{Computed: true, MarkdownDescription: "False: it is sent nothing."},
			"consecutive_failures": number("How often it has failed since it last took an event."),
		},
	},
	read: func(ctx context.Context, api *apiclient.Client, m *webhookFacts) error {
		for w, err := range api.Webhooks.List().All(ctx) {
			switch {
			case err != nil:
				return err
			case string(w.ID) == m.ID.ValueString():
				m.URL, m.DatabaseID = types.StringValue(w.URL), types.StringPointerValue((*string)(w.DatabaseID))
				m.Enabled, m.ConsecutiveFailures = types.BoolValue(w.Enabled), types.Int64Value(int64(w.ConsecutiveFailures))
				return nil
			}
		}
		return errGone
	},
}

type allowlistFacts struct {
	DatabaseID types.String          `tfsdk:"database_id"`
	Entries    []allowlistEntryFacts `tfsdk:"entries"`
}

type allowlistEntryFacts struct {
	ID          types.String `tfsdk:"id"`
	CIDR        types.String `tfsdk:"cidr"`
	Description types.String `tfsdk:"description"`
}

var allowlistSource = source[allowlistFacts]{
	name: "allowlist",
	schema: schema.Schema{
		MarkdownDescription: "The networks that may connect to a database; none: all may.",
		Attributes: map[string]schema.Attribute{
			"database_id": wanted("ID of the database."),
			"entries": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "The networks.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"id": shown("ID of the entry."), "cidr": shown("The network."), "description": shown("What it is."),
				}},
			},
		},
	},
	read: func(ctx context.Context, api *apiclient.Client, m *allowlistFacts) error {
		list, err := api.Allowlist.List(ctx, databaseID(m.DatabaseID))
		m.Entries = []allowlistEntryFacts{}
		for _, e := range list {
			m.Entries = append(m.Entries, allowlistEntryFacts{
				types.StringValue(string(e.ID)), types.StringValue(e.CIDR), types.StringValue(e.Description),
			})
		}
		return err
	},
}

type extensionFacts struct {
	DatabaseID       types.String `tfsdk:"database_id"`
	Name             types.String `tfsdk:"name"`
	Available        types.Bool   `tfsdk:"available"`
	DefaultVersion   types.String `tfsdk:"default_version"`
	InstalledVersion types.String `tfsdk:"installed_version"`
}

var extensionSource = source[extensionFacts]{
	name: "extension",
	schema: schema.Schema{
		MarkdownDescription: "An extension of the catalog, as a database and its server have it.",
		Attributes: map[string]schema.Attribute{
			"database_id": wanted("ID of the database."), "name": wanted("As PostgreSQL names it."),
			"available":         schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the server has it."},
			"default_version":   shown("What an installation or an upgrade would bring."),
			"installed_version": shown("Null where it is not installed."),
		},
	},
	read: func(ctx context.Context, api *apiclient.Client, m *extensionFacts) error {
		catalog, err := api.Extensions.List(ctx, databaseID(m.DatabaseID))
		for _, e := range catalog {
			if string(e.Name) == m.Name.ValueString() {
				m.Available, m.DefaultVersion = types.BoolValue(e.Available), types.StringValue(e.DefaultVersion)
				m.InstalledVersion = types.StringPointerValue(e.InstalledVersion)
				return nil
			}
		}
		return missing(err)
	},
}

type queryTimeoutsFacts struct {
	DatabaseID       types.String `tfsdk:"database_id"`
	DesiredProfile   types.String `tfsdk:"desired_profile"`
	EffectiveProfile types.String `tfsdk:"effective_profile"`
}

var queryTimeoutsSource = source[queryTimeoutsFacts]{
	name: "query_timeouts",
	schema: schema.Schema{
		MarkdownDescription: "How long the sessions of a database may take.",
		Attributes: map[string]schema.Attribute{
			"database_id": wanted("ID of the database."), "desired_profile": shown("What was chosen last."),
			"effective_profile": shown("What the server has confirmed last."),
		},
	},
	read: func(ctx context.Context, api *apiclient.Client, m *queryTimeoutsFacts) error {
		now, err := api.QueryTimeouts.Get(ctx, databaseID(m.DatabaseID))
		m.DesiredProfile = types.StringValue(string(now.DesiredProfile))
		m.EffectiveProfile = types.StringValue(string(now.EffectiveProfile))
		return err
	},
}

var backupPolicySource = source[backupPolicyFacts]{
	name: "backup_policy",
	schema: schema.Schema{
		MarkdownDescription: "Whether the service backs a database up each day.",
		Attributes: map[string]schema.Attribute{
			"database_id": wanted("ID of the database."), "scheduled_backup": shown("`daily` or `none`."),
		},
	},
	read: readPolicy,
}

type backupsFacts struct {
	DatabaseID types.String  `tfsdk:"database_id"`
	Backups    []backupFacts `tfsdk:"backups"`
}

type backupFacts struct {
	Filename  types.String `tfsdk:"filename"`
	Trigger   types.String `tfsdk:"trigger"`
	SizeBytes types.Int64  `tfsdk:"size_bytes"`
	SHA256    types.String `tfsdk:"checksum_sha256"`
	CreatedAt types.String `tfsdk:"created_at"`
	Verified  types.Bool   `tfsdk:"verified"`
}

var backupsSource = source[backupsFacts]{
	name: "backups",
	schema: schema.Schema{
		MarkdownDescription: "The backups of a database, the newest first.",
		Attributes: map[string]schema.Attribute{
			"database_id": wanted("ID of the database."),
			"backups": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "The backups.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"filename": shown("Its name."), "trigger": shown("What it was made for."), "size_bytes": number("Its size."),
					"checksum_sha256": shown("Of the file."), "created_at": shown("When it was made."),
					"verified": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether it was compared with the database."},
				}},
			},
		},
	},
	read: func(ctx context.Context, api *apiclient.Client, m *backupsFacts) error {
		m.Backups = []backupFacts{}
		for b, err := range api.Backups.List(databaseID(m.DatabaseID)).All(ctx) {
			if err != nil {
				return err
			}
			m.Backups = append(m.Backups, factsOf(b))
		}
		return nil
	},
}

func factsOf(b wire.Backup) backupFacts {
	return backupFacts{
		Filename: types.StringValue(string(b.Filename)), Trigger: types.StringValue(string(b.Trigger)),
		SizeBytes: types.Int64Value(b.SizeBytes), SHA256: types.StringValue(b.ChecksumSHA256),
		CreatedAt: types.StringValue(b.CreatedAt.UTC().Format(time.RFC3339Nano)),
		Verified:  types.BoolValue(b.VerifiedAt != nil),
	}
}
