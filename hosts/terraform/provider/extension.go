package provider

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	core "github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
)

type extensionModel struct {
	DatabaseID     types.String `tfsdk:"database_id"`
	Name           types.String `tfsdk:"name"`
	Upgrade        types.String `tfsdk:"upgrade_to"`
	Timeout        types.String `tfsdk:"timeout"`
	IdempotencyKey types.String `tfsdk:"idempotency_key"`
	Version        types.String `tfsdk:"version"`
}

var extension = kind[extensionModel]{
	name: "extension",
	schema: schema.Schema{
		MarkdownDescription: "An extension of the catalog that a database has. The API installs and upgrades extensions and never drops " +
			"one: deleting this resource leaves it there, and says so.",
		Attributes: map[string]schema.Attribute{
			"database_id": ofDatabase(),
			"name":        fixed(true, "As PostgreSQL names it, such as `pg_trgm`."),
			"upgrade_to": schema.StringAttribute{
				Optional: true, MarkdownDescription: "The version that it is to be upgraded to. The server has one that it supports, and no other.",
			},
			"timeout":         timeout("20 minutes"),
			"idempotency_key": idempotencyKey(),
			"version":         schema.StringAttribute{Computed: true, MarkdownDescription: "The installed version."},
		},
	},
	made: func(m extensionModel) bool { return m.Version.ValueString() != "" },
	create: func(ctx context.Context, api *apiclient.Client, m *extensionModel) error {
		err := findExtension(ctx, api, databaseID(m.DatabaseID), m)
		if !errors.Is(err, errGone) {
			return errors.Join(err, upgraded(ctx, api, m))
		}
		return change(ctx, api, m, core.Install)
	},
	read: func(ctx context.Context, api *apiclient.Client, m *extensionModel) error {
		return findExtension(ctx, api, databaseID(m.DatabaseID), m)
	},
	update: func(ctx context.Context, api *apiclient.Client, m *extensionModel, before extensionModel) error {
		m.Version = before.Version
		return upgraded(ctx, api, m)
	},
	remove: func(_ context.Context, _ *apiclient.Client, m extensionModel) error {
		return kept("The extension " + m.Name.ValueString() + " stays in the database: its owner can drop it by SQL.")
	},
	find: func(ctx context.Context, api *apiclient.Client, text string, m *extensionModel) error {
		of, name, err := parts(ctx, api, text, "DATABASE/EXTENSION")
		if err != nil {
			return err
		}
		m.DatabaseID, m.Name = types.StringValue(string(of)), types.StringValue(name)
		return findExtension(ctx, api, of, m)
	},
}

func findExtension(ctx context.Context, api *apiclient.Client, of id.DatabaseID, m *extensionModel) error {
	catalog, err := api.Extensions.List(ctx, of)
	for _, e := range catalog {
		if string(e.Name) == m.Name.ValueString() && e.InstalledVersion != nil {
			m.Version = types.StringPointerValue(e.InstalledVersion)
			return nil
		}
	}
	return errors.Join(err, missing(err))
}

// upgraded upgrades an installed extension that has another version than is wanted.
func upgraded(ctx context.Context, api *apiclient.Client, m *extensionModel) error {
	if m.Upgrade.IsNull() || m.Upgrade.Equal(m.Version) {
		return nil
	}
	if err := change(ctx, api, m, core.Upgrade); err != nil {
		return err
	}
	if !m.Upgrade.Equal(m.Version) {
		return errors.New("the server supports " + m.Version.ValueString() + ", which is installed now, and not " + m.Upgrade.ValueString())
	}
	return nil
}

func change(ctx context.Context, api *apiclient.Client, m *extensionModel, what core.Change) error {
	ctx, cancel := within(ctx, m.Timeout, 20*time.Minute)
	defer cancel()
	of := databaseID(m.DatabaseID)
	asked, err := api.Extensions.Change(ctx, of, wire.ChangeExtension{Extension: core.Name(m.Name.ValueString()), Kind: what},
		apiclient.IdempotencyKey(string(what)+"/"+m.IdempotencyKey.ValueString()+"/"+m.Upgrade.ValueString()))
	if err != nil {
		return err
	}
	if err := ends(ctx, api, asked.Operation); err != nil {
		return err
	}
	return findExtension(ctx, api, of, m)
}
