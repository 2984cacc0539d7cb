package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// kind is a resource: what it is called and has beside a timeout, and how it is kept by the API. M is its model.
type kind[M model] struct {
	name   string
	schema schema.Schema
	// database is the one that changes of it are made in turn with others of; nil: none.
	database func(m M) types.String
	// limit is how long a change may take where the model says nothing else; 0: briefly.
	limit time.Duration
	// create makes it and fills the model in. What it has filled in is kept where it fails, if made says that there is something.
	create func(ctx context.Context, api *apiclient.Client, m *M) error
	made   func(m M) bool
	// read brings the model up to date. errGone, or the API's refusal with 404: there is none any more.
	read func(ctx context.Context, api *apiclient.Client, m *M) error
	// update makes what is there like the model; nil: whatever changes replaces it, or is Terraform's own.
	update func(ctx context.Context, api *apiclient.Client, m *M, before M) error
	remove func(ctx context.Context, api *apiclient.Client, m M) error
	// find fills in, from what "terraform import" is given, what read needs.
	find func(ctx context.Context, api *apiclient.Client, given string, m *M) error
	// guard refuses a plan; nil: none. Before is nil where one is made, planned where it is deleted. One that is replaced is planned
	// twice: with what it is before, and as one that is made; of one that is tainted only the latter is planned.
	guard func(ctx context.Context, s *service, before, planned *M) error
	// notice is a warning about what was read; nil, or empty: none.
	notice func(m M) string
}

// briefly is how long something may take that the service does at once.
const briefly = 5 * time.Minute

// errGone is a resource that was deleted without Terraform.
var errGone = errors.New("there is none any more")

// kept is why a resource stays although Terraform forgets it.
type kept string

func (k kept) Error() string { return string(k) }

type keeper[M model] struct {
	kind[M]

	api *service
}

var (
	_ resource.ResourceWithImportState = (*keeper[timed])(nil)
	_ resource.ResourceWithModifyPlan  = (*keeper[timed])(nil)
	_ resource.ResourceWithConfigure   = (*keeper[timed])(nil)
)

func made[M model](k kind[M]) func() resource.Resource {
	return func() resource.Resource { return &keeper[M]{kind: k} }
}

// whole is the schema with the timeout that every resource has.
func (k kind[M]) whole() schema.Schema {
	of := k.schema
	of.Attributes = maps.Clone(of.Attributes)
	of.Attributes["timeout"] = timeout(cmp.Or(k.limit, briefly))
	return of
}

// Metadata implements resource.Resource.
func (k *keeper[M]) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + k.name
}

// Schema implements resource.Resource.
func (k *keeper[M]) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = k.whole()
}

// Configure implements resource.ResourceWithConfigure.
func (k *keeper[M]) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	k.api, _ = req.ProviderData.(*service) // nil while Terraform only validates
}

// Create implements resource.Resource.
func (k *keeper[M]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m M
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	err := k.change(ctx, m, func(ctx context.Context) error { return k.create(ctx, k.api.Client, &m) })
	k.tell(&resp.Diagnostics, "It was not made", err)
	switch {
	case err == nil:
	case k.made(m):
		resp.Diagnostics.AddWarning("Something of it is there",
			`Terraform takes it as tainted, and replaces it with the next apply. "terraform untaint" keeps it.`)
	default:
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Read implements resource.Resource.
func (k *keeper[M]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m M
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if k.named(ctx, req.State, &resp.Diagnostics); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, briefly)
	defer cancel()
	err := k.read(ctx, k.api.Client, &m)
	if gone(err) {
		resp.State.RemoveResource(ctx)
		return
	}
	if k.tell(&resp.Diagnostics, "It cannot be read", err); err != nil {
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	if k.notice != nil && k.notice(m) != "" {
		resp.Diagnostics.AddWarning("It is not as it should be", k.notice(m))
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
		err = k.change(ctx, m, func(ctx context.Context) error { return k.update(ctx, k.api.Client, &m, before) })
	}
	if k.tell(&resp.Diagnostics, "It was not changed", err); err == nil {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

// Delete implements resource.Resource.
func (k *keeper[M]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m M
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if k.named(ctx, req.State, &resp.Diagnostics); resp.Diagnostics.HasError() {
		return
	}
	err := k.change(ctx, m, func(ctx context.Context) error { return k.remove(ctx, k.api.Client, m) })
	if !gone(err) {
		k.tell(&resp.Diagnostics, "It was not deleted", err)
	}
}

// ImportState implements resource.ResourceWithImportState.
func (k *keeper[M]) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	ctx, cancel := context.WithTimeout(ctx, briefly)
	defer cancel()
	var m M // all null, as the state is
	err := k.find(ctx, k.api.Client, strings.TrimSpace(req.ID), &m)
	if k.tell(&resp.Diagnostics, "There is none to import", err); err == nil {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

// ModifyPlan implements resource.ResourceWithModifyPlan: a plan that the guard refuses is none, so that nothing is deleted which
// hangs on this resource.
func (k *keeper[M]) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if k.guard == nil {
		return
	}
	var before, planned *M
	what := "It cannot be made"
	if !req.State.Raw.IsNull() {
		before, what = new(M), "It is not deleted"
		resp.Diagnostics.Append(req.State.Get(ctx, before)...)
	}
	if !req.Plan.Raw.IsNull() {
		planned = new(M)
		resp.Diagnostics.Append(req.Plan.Get(ctx, planned)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, briefly)
	defer cancel()
	k.tell(&resp.Diagnostics, what, k.guard(ctx, k.api, before, planned))
}

// change makes a change within its time, in turn with others of the same database.
func (k *keeper[M]) change(ctx context.Context, m M, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(m.given(), k.limit, briefly))
	defer cancel()
	var of types.String
	if k.database != nil {
		of = k.database(m)
	}
	err := k.api.alone(ctx, databaseID(of), func() error { return do(ctx) })
	if apiclient.Unanswered(err) {
		err = fmt.Errorf("no whole answer came, so it may have been done: %w", err)
	}
	return err
}

// named refuses a state without the IDs that its resource is known by: somebody has written it by hand.
func (k *keeper[M]) named(ctx context.Context, state tfsdk.State, diags *diag.Diagnostics) {
	for _, name := range []string{"id", "database_id", "namespace_id"} {
		a, has := k.schema.Attributes[name]
		if !has {
			continue
		}
		var text types.String
		diags.Append(state.GetAttribute(ctx, path.Root(name), &text)...)
		_, err := id.Parse[string](text.ValueString())
		if err == nil || text.IsNull() && a.IsOptional() {
			continue
		}
		diags.AddError("The state has no ID of it", fmt.Sprintf("%s is %s, and must be a lowercase UUID. Forget the resource with "+
			`"terraform state rm", and have it found again with "terraform import".`, name, text))
	}
}

// tell adds an error to what Terraform prints.
func (k *keeper[M]) tell(to *diag.Diagnostics, what string, err error) {
	tell(to, what, err, func(name string) bool { return k.schema.Attributes[name] != nil })
}

// gone reports whether an error says that there is no such thing. A service that does not know the route says nothing of it.
func gone(err error) bool {
	code := codeOf(err)
	return errors.Is(err, errGone) || strings.HasSuffix(string(code), "_NOT_FOUND") && code != fault.RouteNotFound
}

// tell adds an error to what Terraform prints, at the attribute that the API names, if there is one.
func tell(to *diag.Diagnostics, what string, err error, has func(attribute string) bool) {
	var stays kept
	var refused *apiclient.Error
	switch {
	case err == nil:
		return
	case errors.As(err, &stays):
		to.AddWarning("It is forgotten, and stays", string(stays))
		return
	case errors.As(err, &refused):
		for _, d := range refused.Details {
			if attribute := underscored(d.Field); has(attribute) {
				to.AddAttributeError(path.Root(attribute), what, d.Issue+" ("+refused.Error()+")")
				return
			}
		}
	}
	to.AddError(what, said(err))
}

// said is the text of an error, for people who do not know of its package.
func said(err error) string {
	return strings.ReplaceAll(err.Error(), "apiclient: ", "")
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

// ends waits for the end of an operation. An end without success is an error.
func ends(ctx context.Context, api *apiclient.Client, o wire.Operation) error {
	done, err := api.Operations.Await(ctx, o.ID, pause)
	switch {
	case err != nil:
		return err
	case done.Error != nil:
		return fmt.Errorf("operation %s is %s: %s: %s", done.ID, done.Status, done.Error.Code, done.Error.Message)
	case done.Status != operation.Succeeded:
		return fmt.Errorf("operation %s is %s", done.ID, done.Status)
	}
	return nil
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

// missing is errGone where a list was read and had no such thing.
func missing(err error) error {
	if err != nil {
		return err
	}
	return errGone
}
