package provider

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/id"
)

type namespaceFacts struct {
	ID      types.String `tfsdk:"id"`
	Name    types.String `tfsdk:"name"`
	Revoked types.Bool   `tfsdk:"revoked"`
}

var namespaceSource = source[namespaceFacts]{
	name: "ci_namespace",
	schema: schema.Schema{
		MarkdownDescription: "A CI namespace of the account, by its ID or its name. The dashboard makes them.",
		Attributes: map[string]schema.Attribute{
			"id": either("ID of the namespace."), "name": either("Its name."),
			"revoked": schema.BoolAttribute{Computed: true, MarkdownDescription: "True: it trusts nobody, for good."},
		},
	},
	read: func(ctx context.Context, api *apiclient.Client, m *namespaceFacts) error {
		if m.ID.IsNull() == m.Name.IsNull() {
			return errors.New("give id or name")
		}
		n, err := namespaceCalled(ctx, api, m.ID.ValueString()+m.Name.ValueString())
		*m = namespaceFacts{
			ID: types.StringValue(string(n.ID)), Name: types.StringValue(n.Name), Revoked: types.BoolValue(n.RevokedAt != nil),
		}
		return err
	},
}

type trustsFacts struct {
	NamespaceID types.String `tfsdk:"namespace_id"`
	Trusts      []trustFacts `tfsdk:"trusts"`
}

type trustFacts struct {
	ID       types.String `tfsdk:"id"`
	Issuer   types.String `tfsdk:"issuer"`
	Audience types.String `tfsdk:"audience"`
	Subject  types.String `tfsdk:"subject"`
}

var trustsSource = source[trustsFacts]{
	name: "ci_trusts",
	schema: schema.Schema{
		MarkdownDescription: "Whose OIDC tokens a CI namespace trusts.",
		Attributes: map[string]schema.Attribute{
			"namespace_id": wanted("ID of the namespace."),
			"trusts": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "The trusts, the oldest first.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"id": shown("ID of the trust."), "issuer": shown("Who signs the tokens."),
					"audience": shown("Whom they are for."), "subject": shown("Whose they are, as a pattern."),
				}},
			},
		},
	},
	read: func(ctx context.Context, api *apiclient.Client, m *trustsFacts) error {
		list, err := api.CINamespaces.ListTrusts(ctx, id.NamespaceID(m.NamespaceID.ValueString()))
		m.Trusts = []trustFacts{}
		for _, t := range list {
			m.Trusts = append(m.Trusts, trustFacts{
				types.StringValue(string(t.ID)), types.StringValue(t.Issuer), types.StringValue(t.Audience),
				types.StringValue(string(t.Subject)),
			})
		}
		return err
	},
}
