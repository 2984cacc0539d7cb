package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	core "github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/querytimeout"
)

type queryTimeoutsModel struct {
	timed

	DatabaseID types.String `tfsdk:"database_id"`
	Profile    types.String `tfsdk:"profile"`
}

var queryTimeouts = kind[queryTimeoutsModel]{
	name: "query_timeouts",
	schema: schema.Schema{
		MarkdownDescription: "How long the sessions of a database may take. A database has one such setting, once one was chosen: " +
			"deleting the resource leaves it as it is, and says so.",
		Attributes: map[string]schema.Attribute{
			"database_id": ofDatabase(),
			"profile": schema.StringAttribute{
				Required: true, MarkdownDescription: "`standard`, `balanced` or `short`.",
				Validators: []validator.String{like(querytimeout.Parse)},
			},
		},
	},
	database: func(m queryTimeoutsModel) types.String { return m.DatabaseID },
	made:     func(queryTimeoutsModel) bool { return false },
	create:   choose,
	read: func(ctx context.Context, api *apiclient.Client, m *queryTimeoutsModel) error {
		now, err := api.QueryTimeouts.Get(ctx, databaseID(m.DatabaseID))
		if err == nil {
			m.Profile = types.StringValue(string(now.DesiredProfile))
		}
		return err
	},
	update: func(ctx context.Context, api *apiclient.Client, m *queryTimeoutsModel, _ queryTimeoutsModel) error {
		return choose(ctx, api, m)
	},
	remove: func(_ context.Context, _ *apiclient.Client, m queryTimeoutsModel) error {
		return kept("The database keeps the query timeouts of the profile " + m.Profile.ValueString() + ".")
	},
	find: func(ctx context.Context, api *apiclient.Client, text string, m *queryTimeoutsModel) error {
		of, _, err := parts(ctx, api, text, "DATABASE")
		m.DatabaseID = types.StringValue(string(of))
		return err
	},
}

// choose sets a profile, and waits until it is in force.
func choose(ctx context.Context, api *apiclient.Client, m *queryTimeoutsModel) error {
	of, profile := databaseID(m.DatabaseID), querytimeout.Profile(m.Profile.ValueString())
	now, err := api.QueryTimeouts.Set(ctx, of, wire.SetQueryTimeouts{Profile: profile})
	for err == nil && now.Operation != nil && !now.Operation.Status.Final() {
		if err := wait(ctx); err != nil {
			return fmt.Errorf("it is not in force yet: %w", err)
		}
		now, err = api.QueryTimeouts.Get(ctx, of)
	}
	if err == nil && now.EffectiveProfile != profile {
		return fmt.Errorf("the change was not made, and the profile %s is in force", now.EffectiveProfile)
	}
	return err
}

type backupPolicyModel struct {
	timed
	backupPolicyFacts
}

type backupPolicyFacts struct {
	DatabaseID      types.String `tfsdk:"database_id"`
	ScheduledBackup types.String `tfsdk:"scheduled_backup"`
}

var backupPolicy = kind[backupPolicyModel]{
	name: "backup_policy",
	schema: schema.Schema{
		MarkdownDescription: "Whether the service backs a database up each day. A database has one such setting; deleting the " +
			"resource sets `daily`.",
		Attributes: map[string]schema.Attribute{
			"database_id": ofDatabase(),
			"scheduled_backup": schema.StringAttribute{
				Required: true, MarkdownDescription: "`daily` or `none`.", Validators: []validator.String{like(core.ParseSchedule)},
			},
		},
	},
	database: func(m backupPolicyModel) types.String { return m.DatabaseID },
	made:     func(backupPolicyModel) bool { return false },
	create: func(ctx context.Context, api *apiclient.Client, m *backupPolicyModel) error {
		return schedule(ctx, api, m, m.ScheduledBackup.ValueString())
	},
	read: func(ctx context.Context, api *apiclient.Client, m *backupPolicyModel) error {
		return readPolicy(ctx, api, &m.backupPolicyFacts)
	},
	update: func(ctx context.Context, api *apiclient.Client, m *backupPolicyModel, _ backupPolicyModel) error {
		return schedule(ctx, api, m, m.ScheduledBackup.ValueString())
	},
	remove: func(ctx context.Context, api *apiclient.Client, m backupPolicyModel) error {
		return schedule(ctx, api, &m, string(core.Daily))
	},
	find: func(ctx context.Context, api *apiclient.Client, text string, m *backupPolicyModel) error {
		of, _, err := parts(ctx, api, text, "DATABASE")
		m.DatabaseID = types.StringValue(string(of))
		return err
	},
}

func readPolicy(ctx context.Context, api *apiclient.Client, m *backupPolicyFacts) error {
	now, err := api.Databases.Get(ctx, databaseID(m.DatabaseID))
	if err == nil {
		m.ScheduledBackup = types.StringValue(string(now.ScheduledBackup))
	}
	return err
}

func schedule(ctx context.Context, api *apiclient.Client, m *backupPolicyModel, what string) error {
	_, err := api.Backups.SetPolicy(ctx, databaseID(m.DatabaseID), wire.SetBackupPolicy{ScheduledBackup: core.Schedule(what)})
	return err
}
