package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	core "github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

type allowlistEntryModel struct {
	timed

	ID          types.String `tfsdk:"id"`
	DatabaseID  types.String `tfsdk:"database_id"`
	CIDR        types.String `tfsdk:"cidr"`
	Description types.String `tfsdk:"description"`
}

var allowlistEntry = kind[allowlistEntryModel]{
	name: "allowlist_entry",
	schema: schema.Schema{
		MarkdownDescription: "A network that may connect to a database. Without any entry all may; with the first, no other may.",
		Attributes: map[string]schema.Attribute{
			"id":          computedID("entry"),
			"database_id": ofDatabase(),
			"cidr":        fixed(true, "Network, such as `198.51.100.0/24`, `198.51.100.7/32` or `2001:db8::/32`.", like(writtenNetwork)),
			"description": fixed(false, "What it is, in up to 200 characters.", like(core.ValidateDescription)),
		},
	},
	database: func(m allowlistEntryModel) types.String { return m.DatabaseID },
	made:     func(m allowlistEntryModel) bool { return m.ID.ValueString() != "" },
	create: func(ctx context.Context, api *apiclient.Client, m *allowlistEntryModel) error {
		e, err := answered(ctx, func(ctx context.Context) (wire.AllowlistEntry, error) {
			return api.Allowlist.Add(ctx, databaseID(m.DatabaseID), wire.AddAllowlistEntry{
				CIDR: m.CIDR.ValueString(), Description: m.Description.ValueStringPointer(),
			})
		})
		if err == nil {
			m.ID = types.StringValue(string(e.ID))
		}
		return err
	},
	read: func(ctx context.Context, api *apiclient.Client, m *allowlistEntryModel) error {
		return findEntry(ctx, api, databaseID(m.DatabaseID), m.ID.ValueString(), m)
	},
	remove: func(ctx context.Context, api *apiclient.Client, m allowlistEntryModel) error {
		return api.Allowlist.Remove(ctx, databaseID(m.DatabaseID), id.AllowlistEntryID(m.ID.ValueString()))
	},
	find: func(ctx context.Context, api *apiclient.Client, text string, m *allowlistEntryModel) error {
		of, entry, err := parts(ctx, api, text, "DATABASE/NETWORK")
		if err != nil {
			return err
		}
		m.DatabaseID = types.StringValue(string(of))
		return findEntry(ctx, api, of, entry, m)
	},
}

// findEntry fills in the entry with an ID or a network.
func findEntry(ctx context.Context, api *apiclient.Client, of id.DatabaseID, named string, m *allowlistEntryModel) error {
	list, err := api.Allowlist.List(ctx, of)
	for _, e := range list {
		if string(e.ID) == named || e.CIDR == named {
			m.ID, m.CIDR = types.StringValue(string(e.ID)), types.StringValue(e.CIDR)
			if e.Description != "" || !m.Description.IsNull() { // none is an empty one
				m.Description = types.StringValue(e.Description)
			}
			return nil
		}
	}
	return missing(err)
}

// writtenNetwork is a network as the service writes it.
func writtenNetwork(text string) (string, error) {
	network, err := core.ParseCIDR(text)
	return network.String(), err
}
