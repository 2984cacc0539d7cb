package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	core "github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/fault"
)

type extensionModel struct {
	timed

	DatabaseID types.String `tfsdk:"database_id"`
	Name       types.String `tfsdk:"name"`
	Upgrade    types.String `tfsdk:"upgrade_to"`
	Version    types.String `tfsdk:"version"`
}

var extension = kind[extensionModel]{
	name: "extension",
	schema: schema.Schema{
		MarkdownDescription: "An extension of the catalog that a database has. The API installs and upgrades extensions and never " +
			"drops one: deleting this resource leaves it there, and says so. The catalog is that of a database that runs.",
		Attributes: map[string]schema.Attribute{
			"database_id": ofDatabase(),
			"name":        fixed(true, "As PostgreSQL names it, such as `pg_trgm`.", like(core.ParseName)),
			"upgrade_to": schema.StringAttribute{
				Optional: true, MarkdownDescription: "The version that it is to have. The server has one that it supports, and no other.",
			},
			"version": schema.StringAttribute{Computed: true, MarkdownDescription: "The installed version."},
		},
	},
	database: func(m extensionModel) types.String { return m.DatabaseID },
	limit:    20 * time.Minute,
	made:     func(m extensionModel) bool { return m.Version.ValueString() != "" },
	create: func(ctx context.Context, api *apiclient.Client, m *extensionModel) error {
		err := findExtension(ctx, api, m)
		if errors.Is(err, errGone) {
			err = change(ctx, api, m, core.Install)
		}
		if err != nil {
			return err
		}
		return upgraded(ctx, api, m)
	},
	read: func(ctx context.Context, api *apiclient.Client, m *extensionModel) error {
		err := findExtension(ctx, api, m)
		switch {
		case codeOf(err) == fault.DatabaseStateConflict: // it does not run, and nobody can have changed it
			return nil
		case err == nil && !m.Upgrade.IsNull(): // another version is to be seen where one is asked for
			m.Upgrade = m.Version
		}
		return err
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
		return findExtension(ctx, api, m)
	},
}

// findExtension fills in the version that is installed.
func findExtension(ctx context.Context, api *apiclient.Client, m *extensionModel) error {
	catalog, err := api.Extensions.List(ctx, databaseID(m.DatabaseID))
	for _, e := range catalog {
		if string(e.Name) == m.Name.ValueString() && e.InstalledVersion != nil {
			m.Version = types.StringPointerValue(e.InstalledVersion)
			return nil
		}
	}
	return missing(err)
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
		return fmt.Errorf("the server supports %s, which is installed now, not %s", m.Version.ValueString(), m.Upgrade.ValueString())
	}
	return nil
}

func change(ctx context.Context, api *apiclient.Client, m *extensionModel, what core.Change) error {
	asked, err := answered(ctx, func(ctx context.Context) (wire.ExtensionOperation, error) {
		return api.Extensions.Change(ctx, databaseID(m.DatabaseID), wire.ChangeExtension{
			Extension: core.Name(m.Name.ValueString()), Kind: what,
		})
	})
	if err != nil {
		return err
	}
	if err := ends(ctx, api, asked.Operation); err != nil {
		return err
	}
	return findExtension(ctx, api, m)
}
