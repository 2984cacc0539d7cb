package provider

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

type allowlistEntryModel struct {
	ID          types.String `tfsdk:"id"`
	DatabaseID  types.String `tfsdk:"database_id"`
	CIDR        types.String `tfsdk:"cidr"`
	Description types.String `tfsdk:"description"`
}

var allowlistEntry = kind[allowlistEntryModel]{
	name: "allowlist_entry",
	schema: schema.Schema{
		MarkdownDescription: "A network that may connect to a database. Without any entry, all may; with the first, all others may not.",
		Attributes: map[string]schema.Attribute{
			"id":          computedID("entry"),
			"database_id": ofDatabase(),
			"cidr":        fixed(true, "Network, as the service writes it: `198.51.100.0/24`, `2001:db8::/32`."),
			"description": fixed(false, "What it is."),
		},
	},
	made: func(m allowlistEntryModel) bool { return m.ID.ValueString() != "" },
	create: func(ctx context.Context, api *apiclient.Client, m *allowlistEntryModel) error {
		e, err := api.Allowlist.Add(ctx, databaseID(m.DatabaseID), wire.AddAllowlistEntry{
			CIDR: m.CIDR.ValueString(), Description: m.Description.ValueStringPointer(),
		})
		if err != nil {
			return err
		}
		m.ID = types.StringValue(string(e.ID))
		if e.CIDR != m.CIDR.ValueString() {
			return errors.New("the service writes that network " + e.CIDR + ": write it so")
		}
		return nil
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
	return errors.Join(err, missing(err))
}
