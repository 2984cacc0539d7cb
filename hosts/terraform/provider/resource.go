package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// kind is a resource: what it is called and has, and how it is kept by the API. M is its model.
type kind[M any] struct {
	name   string
	schema schema.Schema
	// create makes it and fills the model in. What it has filled in is kept where it fails, if made says that there is something.
	create func(ctx context.Context, api *apiclient.Client, m *M) error
	made   func(m M) bool
	// read brings the model up to date. errGone, or the API's refusal with 404: there is none any more.
	read func(ctx context.Context, api *apiclient.Client, m *M) error
	// update makes what is there like the model; nil: whatever changes replaces it.
	update func(ctx context.Context, api *apiclient.Client, m *M, before M) error
	remove func(ctx context.Context, api *apiclient.Client, m M) error
	// find fills in, from what "terraform import" is given, what read needs.
	find func(ctx context.Context, api *apiclient.Client, given string, m *M) error
	// check refuses a plan; nil: none.
	check func(m M, diags *diag.Diagnostics)
}

// errGone is a resource that was deleted without Terraform.
var errGone = errors.New("there is none any more")

// kept is why a resource stays although Terraform forgets it.
type kept string

func (k kept) Error() string { return string(k) }

type keeper[M any] struct {
	kind[M]

	api *apiclient.Client
}

var _ resource.ResourceWithImportState = (*keeper[struct{}])(nil)

func made[M any](k kind[M]) func() resource.Resource {
	return func() resource.Resource { return &keeper[M]{kind: k} }
}

// Metadata implements resource.Resource.
func (k *keeper[M]) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + k.name
}

// Schema implements resource.Resource.
func (k *keeper[M]) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = k.schema
}

// Configure implements resource.ResourceWithConfigure.
func (k *keeper[M]) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	k.api, _ = req.ProviderData.(*apiclient.Client) // nil while Terraform only validates
}

// Create implements resource.Resource.
func (k *keeper[M]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m M
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	err := k.create(ctx, k.api, &m)
	tell(&resp.Diagnostics, "It was not made", err)
	if err == nil || k.made(m) {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

// Read implements resource.Resource.
func (k *keeper[M]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m M
	if resp.Diagnostics.Append(req.State.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	err := k.read(ctx, k.api, &m)
	if gone(err) {
		resp.State.RemoveResource(ctx)
		return
	}
	if tell(&resp.Diagnostics, "It cannot be read", err); err == nil {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

// Update implements resource.Resource.
func (k *keeper[M]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m, before M
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.Append(req.State.Get(ctx, &before)...); resp.Diagnostics.HasError() {
		return
	}
	var err error
	if k.update != nil {
		err = k.update(ctx, k.api, &m, before)
	}
	if tell(&resp.Diagnostics, "It was not changed", err); err == nil {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

// Delete implements resource.Resource.
func (k *keeper[M]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m M
	if resp.Diagnostics.Append(req.State.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	if err := k.remove(ctx, k.api, m); !gone(err) {
		tell(&resp.Diagnostics, "It was not deleted", err)
	}
}

// ImportState implements resource.ResourceWithImportState.
func (k *keeper[M]) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	var m M
	if resp.Diagnostics.Append(resp.State.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	err := k.find(ctx, k.api, strings.TrimSpace(req.ID), &m)
	if tell(&resp.Diagnostics, "There is none to import", err); err == nil {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

// ValidateConfig implements resource.ResourceWithValidateConfig.
func (k *keeper[M]) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m M
	if k.check == nil {
		return
	}
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); !resp.Diagnostics.HasError() {
		k.check(m, &resp.Diagnostics)
	}
}

// gone reports whether an error says that there is no such thing.
func gone(err error) bool {
	var refused *apiclient.Error
	return errors.Is(err, errGone) || errors.As(err, &refused) && refused.Status == 404 && refused.Code != ""
}

// tell adds an error to what Terraform prints, at the attribute that the API names.
func tell(to *diag.Diagnostics, what string, err error) {
	var stays kept
	var refused *apiclient.Error
	switch {
	case err == nil:
	case errors.As(err, &stays):
		to.AddWarning("It is forgotten, and stays", string(stays))
	case errors.As(err, &refused) && len(refused.Details) > 0:
		for _, d := range refused.Details {
			to.AddAttributeError(path.Root(underscored(d.Field)), what, d.Issue+" ("+refused.Error()+")")
		}
	case apiclient.Unanswered(err):
		to.AddError(what+", or it was", "No whole answer came, so it may have been done: "+strings.TrimPrefix(err.Error(), "apiclient: "))
	default:
		to.AddError(what, strings.TrimPrefix(err.Error(), "apiclient: "))
	}
}

// underscored is the attribute of a field of the API: displayName is display_name.
func underscored(field string) string {
	var b strings.Builder
	for _, r := range field {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// pause is between two looks at what is under way.
const pause = 2 * time.Second

// ends waits for the end of an operation. An end without success is an error.
func ends(ctx context.Context, api *apiclient.Client, o wire.Operation) error {
	done, err := api.Operations.Await(ctx, o.ID, pause)
	if err != nil {
		return err
	}
	if done.Error != nil {
		return fmt.Errorf("operation %s is %s: %s: %s", done.ID, done.Status, done.Error.Code, done.Error.Message)
	}
	if done.Status != "succeeded" {
		return fmt.Errorf("operation %s is %s", done.ID, done.Status)
	}
	return nil
}

// within bounds what is done by an attribute such as "20m".
func within(ctx context.Context, limit types.String, otherwise time.Duration) (context.Context, context.CancelFunc) {
	if given, err := time.ParseDuration(limit.ValueString()); err == nil && given > 0 {
		otherwise = given
	}
	return context.WithTimeout(ctx, otherwise)
}

// The attributes that several resources have.

func computedID(of string) schema.StringAttribute {
	return schema.StringAttribute{
		Computed: true, MarkdownDescription: "ID of the " + of + ".",
		PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}

// fixed is an attribute whose change makes a new resource.
func fixed(required bool, text string) schema.StringAttribute {
	return schema.StringAttribute{
		Required: required, Optional: !required, MarkdownDescription: text + " A change makes a new one.",
		PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
	}
}

// told is what the service says, and a change of the resource leaves.
func told(text string) schema.StringAttribute {
	return schema.StringAttribute{
		Computed: true, MarkdownDescription: text,
		PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}

func ofDatabase() schema.StringAttribute { return fixed(true, "ID of the database.") }

func timeout(otherwise string) schema.StringAttribute {
	return schema.StringAttribute{
		Optional: true, MarkdownDescription: "How long one step may take, as in `20m`; " + otherwise + " without it.",
	}
}

func databaseID(of types.String) id.DatabaseID { return id.DatabaseID(of.ValueString()) }

// parts splits what "terraform import" is given, such as DATABASE/ROLE, and looks the database up, by its ID or its name.
func parts(ctx context.Context, api *apiclient.Client, given, form string) (of id.DatabaseID, rest string, err error) {
	name, rest, several := strings.Cut(given, "/")
	if several != strings.Contains(form, "/") || name == "" || several && rest == "" {
		return "", "", fmt.Errorf("give %s, and not %q", form, given)
	}
	found, err := databaseCalled(ctx, api, name)
	return found.ID, rest, err
}

// databaseCalled finds a database by its ID or its name.
func databaseCalled(ctx context.Context, api *apiclient.Client, name string) (wire.Database, error) {
	if of, err := id.Parse[id.DatabaseID](name); err == nil {
		return api.Databases.Get(ctx, of)
	}
	for db, err := range api.Databases.List().All(ctx) {
		if err != nil || db.Name == name {
			return db, err
		}
	}
	return wire.Database{}, fmt.Errorf("no database that the key can see is called %q", name)
}
