package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/id"
)

type trustModel struct {
	timed

	ID          types.String `tfsdk:"id"`
	NamespaceID types.String `tfsdk:"namespace_id"`
	Issuer      types.String `tfsdk:"issuer"`
	Audience    types.String `tfsdk:"audience"`
	Subject     types.String `tfsdk:"subject"`
}

func (m trustModel) namespace() id.NamespaceID { return id.NamespaceID(m.NamespaceID.ValueString()) }

var ciTrust = kind[trustModel]{
	name: "ci_trust",
	schema: schema.Schema{
		MarkdownDescription: "Whose OIDC tokens can be exchanged for keys of a CI namespace. Who gets such a token can have a key " +
			"for the previews of the namespace. Deleting the trust ends the keys that were made by it. See " +
			"[ci.md](ci.md#without-a-stored-key).",
		Attributes: map[string]schema.Attribute{
			"id":           computedID("trust"),
			"namespace_id": fixed(true, "ID of the namespace: see `pgherd_ci_namespace`.", like(id.Parse[id.NamespaceID])),
			"issuer": fixed(true, "HTTPS URL of the issuer, to the letter as in its tokens.", accepted(func(text string) error {
				return trustable(text, anAudience, aSubject)
			})),
			"audience": fixed(true, "Whom the tokens must be for, and nobody else.", accepted(func(text string) error {
				return trustable(anIssuer, text, aSubject)
			})),
			"subject": fixed(true, "Whose the tokens must be, as in `repo:acme/shop:ref:refs/heads/*`.", accepted(func(text string) error {
				return trustable(anIssuer, anAudience, text)
			})),
		},
	},
	made: func(m trustModel) bool { return m.ID.ValueString() != "" },
	create: func(ctx context.Context, api *apiclient.Client, m *trustModel) error {
		added, err := answered(ctx, func(ctx context.Context) (wire.Trust, error) {
			return api.CINamespaces.AddTrust(ctx, m.namespace(), wire.AddTrust{
				Issuer: m.Issuer.ValueString(), Audience: m.Audience.ValueString(), Subject: m.Subject.ValueString(),
			})
		})
		if err == nil {
			m.ID = types.StringValue(string(added.ID))
		}
		return err
	},
	read: func(ctx context.Context, api *apiclient.Client, m *trustModel) error {
		return m.find(ctx, api, func(t wire.Trust) bool { return string(t.ID) == m.ID.ValueString() })
	},
	remove: func(ctx context.Context, api *apiclient.Client, m trustModel) error {
		return api.CINamespaces.RemoveTrust(ctx, m.namespace(), id.TrustID(m.ID.ValueString()))
	},
	find: func(ctx context.Context, api *apiclient.Client, text string, m *trustModel) error {
		name, trust, named := strings.Cut(text, "/")
		if !named || name == "" || trust == "" {
			return fmt.Errorf("give NAMESPACE/TRUST, and not %q", text)
		}
		n, err := namespaceCalled(ctx, api, name)
		if err != nil {
			return err
		}
		m.NamespaceID = types.StringValue(string(n.ID))
		return m.find(ctx, api, func(t wire.Trust) bool { return string(t.ID) == trust || string(t.Subject) == trust })
	},
}

// A trust that is well formed but for the part that is checked.
const (
	anIssuer   = "https://ci.example.com"
	anAudience = "https://pgherd.example.com"
	aSubject   = "repo:acme/shop:pull_request"
)

func trustable(issuer, audience, subject string) error {
	_, err := citoken.NewTrust(issuer, audience, subject)
	return err
}

// find fills in the one trust of the namespace that is meant.
func (m *trustModel) find(ctx context.Context, api *apiclient.Client, is func(wire.Trust) bool) error {
	list, err := api.CINamespaces.ListTrusts(ctx, m.namespace())
	list = slices.DeleteFunc(list, func(t wire.Trust) bool { return !is(t) })
	switch {
	case err != nil || len(list) == 0:
		return missing(err)
	case len(list) > 1:
		return errors.New("several trusts have that subject: give the ID of one")
	}
	m.ID, m.Issuer = types.StringValue(string(list[0].ID)), types.StringValue(list[0].Issuer)
	m.Audience, m.Subject = types.StringValue(list[0].Audience), types.StringValue(string(list[0].Subject))
	return nil
}

// namespaceCalled finds a CI namespace of the account by its ID or its name.
func namespaceCalled(ctx context.Context, api *apiclient.Client, name string) (wire.Namespace, error) {
	list, err := api.CINamespaces.List(ctx)
	for _, n := range list {
		if n.Name == name || string(n.ID) == name {
			return n, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("no CI namespace of the account is called %q", name)
	}
	return wire.Namespace{}, err
}
