package provider

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	core "github.com/pgherd/pgherd/core/webhook"
)

type webhookModel struct {
	timed

	ID            types.String `tfsdk:"id"`
	URL           types.String `tfsdk:"url"`
	DatabaseID    types.String `tfsdk:"database_id"`
	Rotation      types.String `tfsdk:"rotation"`
	SecretInState types.Bool   `tfsdk:"secret_in_state"`
	Secret        types.String `tfsdk:"secret"`
}

func (m webhookModel) id() id.WebhookID { return id.WebhookID(m.ID.ValueString()) }

var webhook = kind[webhookModel]{
	name: "webhook",
	schema: schema.Schema{
		MarkdownDescription: "An endpoint that is sent signed events. One that is disabled, as the service does where it fails too " +
			"often, is gone for Terraform, and is made anew.",
		Attributes: map[string]schema.Attribute{
			"id":  computedID("endpoint"),
			"url": fixed(true, "HTTPS URL of a public host.", like(writtenURL)),
			"database_id": fixed(false, "ID of the database whose events it hears; without it those of all databases of the account.",
				like(id.Parse[id.DatabaseID])),
			"rotation": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Any text, such as a date: with another one the secret is replaced.",
			},
			"secret_in_state": inState("secret", "Then `svc webhooks rotate` makes one for whoever needs it, and `rotation` cannot."),
			"secret": secret(once{kept: "secret_in_state", rotation: "rotation"},
				"What events are signed with. Nothing tells it again: null after an import."),
		},
	},
	made: func(m webhookModel) bool { return m.ID.ValueString() != "" },
	create: func(ctx context.Context, api *apiclient.Client, m *webhookModel) error {
		ask := wire.CreateWebhook{URL: m.URL.ValueString()}
		if of := databaseID(m.DatabaseID); of != "" {
			ask.DatabaseID = &of
		}
		created, err := answered(ctx, func(ctx context.Context) (wire.WebhookSecret, error) { return api.Webhooks.Create(ctx, ask) })
		if err == nil {
			m.ID, m.Secret = types.StringValue(string(created.ID)), unless(m.SecretInState, created.Secret)
		}
		return err
	},
	read: func(ctx context.Context, api *apiclient.Client, m *webhookModel) error {
		for w, err := range api.Webhooks.List().All(ctx) {
			switch {
			case err != nil:
				return err
			case w.ID == m.id() && w.Enabled:
				m.URL, m.DatabaseID = types.StringValue(w.URL), types.StringPointerValue((*string)(w.DatabaseID))
				return nil
			}
		}
		return errGone
	},
	update: func(ctx context.Context, api *apiclient.Client, m *webhookModel, before webhookModel) error {
		if !rotates(m.Rotation, before.Rotation) {
			return nil
		}
		rotated, err := api.Webhooks.RotateSecret(ctx, m.id())
		if err == nil {
			m.Secret = types.StringValue(rotated.Secret)
		}
		return err
	},
	remove: func(ctx context.Context, api *apiclient.Client, m webhookModel) error {
		return api.Webhooks.Disable(ctx, m.id())
	},
	find: func(ctx context.Context, api *apiclient.Client, text string, m *webhookModel) error {
		var found []id.WebhookID
		for w, err := range api.Webhooks.List().All(ctx) {
			if err != nil {
				return err
			}
			if w.Enabled && (string(w.ID) == text || w.URL == text) {
				found = append(found, w.ID)
			}
		}
		if len(found) > 1 {
			return errors.New("several endpoints have that URL: give the ID of one")
		}
		if len(found) == 0 {
			return errors.New("no endpoint that is enabled has that ID or URL")
		}
		m.ID = types.StringValue(string(found[0]))
		return nil
	},
}

// writtenURL is a URL as the service writes it. Which addresses may be used is for that to say.
func writtenURL(text string) (string, error) {
	target, err := core.Policy{AllowPrivate: true}.ParseURL(text)
	return target.URL, err
}
