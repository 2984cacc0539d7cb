package provider

import (
	"context"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/pgherd/pgherd/acceptance/check"
)

const (
	shopsID   = "0189abcd-ef01-4234-8567-89abcdef0123"
	othersID  = "0189abcd-ef01-4234-8567-89abcdef0124"
	databases = `{"data":[{"id":"` + shopsID + `","name":"shop"},{"id":"` + othersID + `","name":"other"}],"nextCursor":null}`
)

// A plan that would lose a database is none: also one that deletes it only to make it again, which its name is in the way of.
func TestADatabaseIsNotLost(t *testing.T) {
	const protected, unprotected = true, false
	is := func(name, label string, protected bool) *databaseModel {
		return &databaseModel{
			Name: types.StringValue(name), DisplayName: types.StringValue(label), RoleModel: types.StringValue("managed"),
			DeletionProtection: types.BoolValue(protected), IdempotencyKey: types.StringUnknown(),
		}
	}
	with := func(m *databaseModel, key string) *databaseModel {
		m.IdempotencyKey = types.StringValue(key)
		return m
	}
	unknown, single := is("", "Shop", unprotected), is("shop", "Shop", unprotected)
	unknown.Name, single.RoleModel = types.StringUnknown(), types.StringValue("single_login")
	for what, c := range map[string]struct {
		before, planned *databaseModel
		refusal         string // empty: none
	}{
		"deleted":                                {is("shop", "Shop", protected), nil, "deletion_protection is true"},
		"deleted, not protected":                 {is("shop", "Shop", unprotected), nil, ""},
		"another name":                           {is("shop", "Shop", protected), is("new", "Shop", protected), "deletion_protection"},
		"another name, protected no more":        {is("shop", "Shop", protected), is("new", "Shop", unprotected), "is true"},
		"another name, not protected":            {is("shop", "Shop", unprotected), is("new", "Shop", protected), ""},
		"who knows what name":                    {is("shop", "Shop", protected), unknown, "deletion_protection"},
		"another label, not protected":           {is("shop", "Shop", unprotected), is("shop", "Other", protected), "keeps its name"},
		"another label and name, not protected":  {is("shop", "Shop", unprotected), is("new", "Other", protected), ""},
		"another role model, not protected":      {is("shop", "Shop", unprotected), single, "keeps its name"},
		"nothing that replaces it":               {is("shop", "Shop", protected), is("shop", "Shop", unprotected), ""},
		"made":                                   {nil, is("new", "Shop", protected), ""},
		"made with a name that is not known yet": {nil, unknown, ""},
		"made with the name of one in the state": {nil, is("shop", "Shop", protected), "keeps its name"},
		"the same with another key":              {nil, with(is("shop", "Shop", protected), "b"), "keeps its name"},
		"made with the key of one in the state":  {nil, with(is("new", "Shop", protected), "a"), "idempotency_key"},
		"made with the name of another":          {nil, is("other", "Shop", protected), "is there already"},
		"perhaps made by an interrupted apply":   {nil, with(is("other", "Shop", protected), "b"), ""},
	} {
		s := answering(t, func(string) string { return databases })
		s.held.add("database", []byte(`{"id":"`+shopsID+`","idempotency_key":"a"}`))
		err := guardDatabase(t.Context(), s, c.before, c.planned)
		if (err != nil) != (c.refusal != "") || err != nil && !strings.Contains(err.Error(), c.refusal) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Terraform calls the provider for every object of a state, before it plans anything for that.
func TestTheProviderKnowsTheState(t *testing.T) {
	s := NewServer().(server) //nolint:forcetypeassert // it is one
	for _, state := range []string{`{"id":"r","database_id":"d","idempotency_key":"a","timeout":null}`, `{"id":5}`, `nonsense`} {
		_, err := s.UpgradeResourceState(t.Context(), &tfprotov6.UpgradeResourceStateRequest{
			TypeName: "pgherd_role", RawState: &tfprotov6.RawState{JSON: []byte(state)},
		})
		check.NoError(t, err)
	}
	if !s.held.has("role", func(o object) bool { return o == object{"r", "d", "a"} }) {
		t.Errorf("it knows of %v", s.held.objects)
	}
	d, e, a, b := types.StringValue("d"), types.StringValue("e"), types.StringValue("a"), types.StringValue("b")
	for _, c := range []struct {
		resource string
		of, key  types.String
		spent    bool
	}{
		{"role", d, a, true}, {"role", d, b, false}, {"role", e, a, false}, {"database", d, a, false},
		{"role", types.StringUnknown(), a, false}, {"role", d, types.StringUnknown(), false},
	} {
		if err := s.held.unspent(c.resource, c.of, c.key); (err != nil) != c.spent {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestADatabaseInErrorIsShown(t *testing.T) {
	for status, warned := range map[string]bool{"active": false, "stopped": false, "error": true} {
		of := &keeper[databaseModel]{database, answering(t, func(string) string {
			return `{"id":"` + shopsID + `","name":"shop","status":"` + status + `"}`
		})}
		state := stateOf(t, database, databaseModel{ID: types.StringValue(shopsID)})
		resp := resource.ReadResponse{State: state}
		of.Read(t.Context(), resource.ReadRequest{State: state}, &resp)
		var m databaseModel
		resp.Diagnostics.Append(resp.State.Get(t.Context(), &m)...)
		if resp.Diagnostics.HasError() || (resp.Diagnostics.WarningsCount() == 1) != warned || m.Status.ValueString() != status {
			t.Errorf("%s: %s, %v", status, m.Status, resp.Diagnostics)
		}
	}
}

func TestAStatusFollows(t *testing.T) {
	active := types.StringValue("active")
	state := stateOf(t, database, databaseModel{Running: types.BoolValue(true), Status: active})
	for planned, want := range map[types.Bool]types.String{
		types.BoolValue(true): active, types.BoolValue(false): types.StringUnknown(), types.BoolUnknown(): types.StringUnknown(),
	} {
		plan := stateOf(t, database, databaseModel{Running: planned})
		resp := planmodifier.StringResponse{PlanValue: types.StringUnknown()}
		following{}.PlanModifyString(t.Context(), planmodifier.StringRequest{
			State: state, Plan: tfsdk.Plan(plan), StateValue: active,
		}, &resp)
		if !resp.PlanValue.Equal(want) || resp.Diagnostics.HasError() {
			t.Errorf("running is %s: %s, %v", planned, resp.PlanValue, resp.Diagnostics)
		}
	}
}

// What is there under a name and a key is made by no other apply, also where it was stopped meanwhile.
func TestAnInterruptedDatabaseIsTaken(t *testing.T) {
	for status, taken := range map[string]bool{"active": true, "stopped": true, "error": false} {
		s := answering(t, func(path string) string {
			if strings.HasSuffix(path, "/lifecycle") {
				return `{"data":{"status":"stopped"}}`
			}
			return `{"id":"` + shopsID + `","name":"shop","status":"` + status + `","password":"p","connectionString":"c"}`
		})
		m := databaseModel{Running: types.BoolValue(false), IdempotencyKey: types.StringValue("a")}
		err := createDatabase(t.Context(), s.Client, &m)
		if (err == nil) != taken || taken && (m.Running.ValueBool() || m.Status.ValueString() != "stopped") {
			t.Errorf("%s: %s, %v", status, m.Status, err)
		}
		if m.Password.ValueString() != "p" || m.ConnectionString.ValueString() != "c" {
			t.Errorf("%s: without its password", status)
		}
	}
}

func TestEveryResourceHasATimeout(t *testing.T) {
	for _, made := range New().Resources(t.Context()) {
		var name resource.MetadataResponse
		var s resource.SchemaResponse
		made().Metadata(t.Context(), resource.MetadataRequest{}, &name)
		made().Schema(t.Context(), resource.SchemaRequest{}, &s)
		if !s.Schema.Attributes["timeout"].IsOptional() {
			t.Errorf("%s has none", name.TypeName)
		}
	}
	m := memberModel{timed: timed{types.StringValue("1m")}}
	var end bool
	of := &keeper[memberModel]{member, working(t, func() string { return "succeeded" })}
	check.NoError(t, of.change(t.Context(), m, func(ctx context.Context) error {
		_, end = ctx.Deadline()
		return nil
	}))
	if !end || m.given().Minutes() != 1 || (memberModel{}).given() != 0 {
		t.Errorf("%s", m.given())
	}
}

func TestMembersAreFoundByAddressAndByID(t *testing.T) {
	const people = `{"data":{"members":[{"id":"m","email":"ann@example.com","role":"viewer"}],` +
		`"invitations":[{"id":"i","email":"bob@example.com","role":"admin","status":"open"},` +
		`{"id":"j","email":"eve@example.com","role":"admin","status":"expired"}]}}`
	s := answering(t, func(path string) string {
		if strings.HasSuffix(path, "/members") {
			return people
		}
		return databases
	})
	for named, want := range map[string]string{
		"ann@example.com": "m", "Ann@Example.com": "m", "m": "m", "bob@example.com": "i", "i": "i",
		"j": "", "eve@example.com": "", "x": "",
	} {
		var m memberModel
		err := member.find(t.Context(), s.Client, "shop/"+named, &m)
		found := strings.HasSuffix(m.Email.ValueString(), "@example.com")
		if (err == nil) != (want != "") || m.ID.ValueString() != want || found != (want != "") {
			t.Errorf("%s: %s of %s, %v", named, m.ID, m.Email, err)
		}
	}
}

// raw is a null object of a resource.
func raw[M model](t *testing.T, k kind[M]) tftypes.Value {
	t.Helper()
	return tftypes.NewValue(k.whole().Type().TerraformType(t.Context()), nil)
}

// What is made and what is deleted is planned with the guard, each without what there is none of.
func TestPlansAreGuarded(t *testing.T) {
	s := answering(t, func(string) string { return databases })
	s.held.add("database", []byte(`{"id":"`+shopsID+`"}`))
	of := &keeper[databaseModel]{database, s}
	shop := stateOf(t, database, databaseModel{
		ID: types.StringValue(shopsID), Name: types.StringValue("shop"), DeletionProtection: types.BoolValue(true),
	})
	none := raw(t, database)
	for what, c := range map[string]struct {
		before, planned tftypes.Value
		refused         bool
	}{
		"kept": {shop.Raw, shop.Raw, false}, "deleted": {shop.Raw, none, true}, "made again": {none, shop.Raw, true},
	} {
		var resp resource.ModifyPlanResponse
		of.ModifyPlan(t.Context(), resource.ModifyPlanRequest{
			State: tfsdk.State{Schema: shop.Schema, Raw: c.before}, Plan: tfsdk.Plan{Schema: shop.Schema, Raw: c.planned},
		}, &resp)
		if resp.Diagnostics.HasError() != c.refused {
			t.Errorf("%s: %v", what, resp.Diagnostics)
		}
	}
}

// Terraform gives a state that is null to fill in.
func TestADatabaseIsImported(t *testing.T) {
	of := &keeper[databaseModel]{database, answering(t, func(path string) string {
		if strings.HasSuffix(path, "/managed-roles") {
			return `{"roles":[{},{},{}]}`
		}
		return databases
	})}
	for name, found := range map[string]bool{"shop": true, "none": false} {
		resp := resource.ImportStateResponse{State: tfsdk.State{Schema: database.whole(), Raw: raw(t, database)}}
		of.ImportState(t.Context(), resource.ImportStateRequest{ID: name}, &resp)
		if resp.Diagnostics.HasError() == found {
			t.Fatalf("%s: %v", name, resp.Diagnostics)
		}
		if !found {
			continue
		}
		var m databaseModel
		resp.Diagnostics.Append(resp.State.Get(t.Context(), &m)...)
		if m.ID.ValueString() != shopsID || m.RoleModel.ValueString() != "managed" || !m.DeletionProtection.ValueBool() {
			t.Errorf("%s: %+v, %v", name, m, resp.Diagnostics)
		}
	}
}
