// Package webhooks has the commands of svc about webhooks and their deliveries.
package webhooks

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// Command makes the command "svc webhooks".
func Command(a *app.App) *cobra.Command {
	return app.Group("webhooks", "Have events sent to a URL, and check what arrives",
		webhooksList(a),
		webhooksCreate(a),
		webhooksRotate(a),
		webhooksDisable(a),
		webhooksTest(a),
		webhooksDeliveries(a),
		webhooksRedeliver(a),
		webhooksVerify(a),
	)
}

func webhooksList(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the webhooks of the account, disabled ones too", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				const none = `No webhooks. Make one with "svc webhooks create HTTPS-URL".`
				return app.ShowAll(a, c.Webhooks.List().All(ctx), none, func(w wire.Webhook) []app.Field {
					return []app.Field{
						{"URL", w.URL}, {"STATUS", enabled(w.Enabled)}, {"DATABASE", w.DatabaseID}, {"FAILURES", failures(w)},
						{"CREATED", w.CreatedAt}, {"ID", w.ID},
					}
				})
			})
		},
	}
}

func enabled(is bool) webhook.Status {
	if is {
		return webhook.Enabled
	}
	return webhook.Disabled
}

// failures is how many attempts in a row have failed; nil for none.
func failures(w wire.Webhook) any {
	if w.ConsecutiveFailures == 0 {
		return nil
	}
	return w.ConsecutiveFailures
}

// anyAddress reads URLs. Which addresses may be used is for the service to say.
var anyAddress = webhook.Policy{AllowPrivate: true}

func webhooksCreate(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "create HTTPS-URL [DATABASE]", Short: "Have events sent to a URL, and print the signing secret once",
		Args: cobra.RangeArgs(1, 2),
		Long: `Have the events of a database, or of all databases of the account, sent to a URL.

The signing secret that is printed is shown only now. If the answer is lost, "svc webhooks list" shows whether the webhook was
made; "svc webhooks rotate" prints another secret then.`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) != 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.CompleteDatabase(cmd, nil, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := anyAddress.ParseURL(args[0]); err != nil {
				return app.Usage("%w", err)
			}
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				b := wire.CreateWebhook{URL: args[0]}
				if len(args) > 1 {
					of, err := a.DatabaseNamed(ctx, args[1])
					if err != nil {
						return err
					}
					b.DatabaseID = &of
				}
				made, err := c.Webhooks.Create(ctx, b)
				if err != nil {
					return a.MayBe(err, "see whether it was made with: "+a.Onward("svc", "webhooks", "list"))
				}
				return showSecret(a, made)
			})
		},
	}
}

func showSecret(a *app.App, w wire.WebhookSecret) error {
	return a.ShowRecord(w,
		app.Field{"URL", w.URL},
		app.Field{"ID", w.ID},
		app.Field{"Database", w.DatabaseID},
		app.Field{"Status", enabled(w.Enabled)},
		app.Field{"Secret", w.Secret},
	)
}

func webhooksRotate(a *app.App) *cobra.Command {
	return a.Confirmed(&cobra.Command{
		Use: "rotate WEBHOOK", Short: "Replace the signing secret, and print the new one once", Args: cobra.ExactArgs(1),
		Long: `Replace the signing secret of a webhook, which is named by URL or ID, and print the new one, which is shown only now. The
secret before signs nothing any more, also no retries. A disabled webhook is enabled by it.`,
		ValidArgsFunction: completeWebhook(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.Ask(args[0], "This ends the signing secret of "+args[0]+" at once."); err != nil {
				return err
			}
			return onWebhook(a, func(ctx context.Context, c *apiclient.Client, of id.WebhookID, _ []string) error {
				rotated, err := c.Webhooks.RotateSecret(ctx, of)
				if err != nil {
					return a.MayBe(err, "get another secret, which ends that of now, with: "+app.Again(cmd, args))
				}
				return showSecret(a, rotated)
			})(cmd, args)
		},
	})
}

func webhooksDisable(a *app.App) *cobra.Command {
	return a.Confirmed(&cobra.Command{
		Use: "disable WEBHOOK", Short: "Send no more events to a webhook", Args: cobra.ExactArgs(1),
		Long: `Send no more events to a webhook, which is named by URL or ID. Deliveries that wait for it fail. It stays listed; "svc
webhooks rotate" enables it again, with another secret.`,
		ValidArgsFunction: completeWebhook(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.Ask(args[0], "This sends no more events to "+args[0]+", and ends its signing secret."); err != nil {
				return err
			}
			return onWebhook(a, func(ctx context.Context, c *apiclient.Client, of id.WebhookID, _ []string) error {
				err := c.Webhooks.Disable(ctx, of)
				return a.Done(map[string]string{"id": string(of)}, err, "%s is disabled.", args[0])
			})(cmd, args)
		},
	})
}

func webhooksTest(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "test WEBHOOK", Short: "Send a test event to a webhook", Args: cobra.ExactArgs(1),
		Long: `Send the event webhook.test to a webhook, which is named by URL or ID.

"svc webhooks deliveries" shows what became of it.`,
		ValidArgsFunction: completeWebhook(a),
		RunE: onWebhook(a, func(ctx context.Context, c *apiclient.Client, of id.WebhookID, _ []string) error {
			queued, err := c.Webhooks.Test(ctx, of)
			if err != nil {
				return err
			}
			return showQueued(a, of, queued)
		}),
	}
}

// showQueued shows a delivery that is about to be made.
func showQueued(a *app.App, of id.WebhookID, d wire.Delivery) error {
	if !a.WantsJSON() {
		a.Note("see what becomes of it with: %s", a.Onward("svc", "webhooks", "deliveries", string(of)))
	}
	return a.ShowRecord(d, app.Field{"Delivery", d.DeliveryID}, app.Field{"Event", d.Event}, app.Field{"Status", d.Status})
}

func webhooksDeliveries(a *app.App) *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use: "deliveries WEBHOOK", Short: "List the attempts to deliver to a webhook, newest first", Args: cobra.ExactArgs(1),
		Long: `List the attempts to deliver to a webhook, which is named by URL or ID, newest first. The service keeps them for 30 days,
unless its operator has chosen another time.`,
		ValidArgsFunction: completeWebhook(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if most < 1 {
				return app.Usage("--limit must be 1 or more")
			}
			return onWebhook(a, func(ctx context.Context, c *apiclient.Client, of id.WebhookID, _ []string) error {
				var list []wire.DeliveryAttempt
				for attempt, err := range c.Webhooks.ListDeliveryAttempts(of).All(ctx) {
					if err != nil {
						return err
					}
					if list = append(list, attempt); len(list) == most {
						break
					}
				}
				return showAttempts(a, list)
			})(cmd, args)
		},
	}
	cmd.Flags().IntVar(&most, "limit", 100, "list at most this many")
	return cmd
}

func showAttempts(a *app.App, list []wire.DeliveryAttempt) error {
	return app.ShowList(a, list, "No attempts.", func(d wire.DeliveryAttempt) []app.Field {
		return []app.Field{
			{"AT", d.At}, {"EVENT", d.Event}, {"STATUS", d.Status}, {"ATTEMPT", d.Attempt}, {"ANSWER", d.StatusCode},
			{"TOOK", fmt.Sprintf("%d ms", d.TookMs)}, {"ERROR", d.Error}, {"NEXT", d.NextAttemptAt}, {"DELIVERY", d.DeliveryID},
		}
	})
}

func webhooksRedeliver(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "redeliver WEBHOOK DELIVERY", Short: "Send an event again", Args: cobra.ExactArgs(2),
		Long: `Send an event again. The receiver gets it with the Service-Event-Id that it had.

The webhook is named by URL or ID, the delivery by its ID, which "svc webhooks deliveries" shows.`,
		ValidArgsFunction: completeWebhook(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			delivery, err := app.WantID[id.DeliveryID](args[1], "DELIVERY")
			if err != nil {
				return err
			}
			return onWebhook(a, func(ctx context.Context, c *apiclient.Client, of id.WebhookID, _ []string) error {
				queued, err := c.Webhooks.RedeliverEvent(ctx, of, delivery)
				if err != nil {
					return err
				}
				return showQueued(a, of, queued)
			})(cmd, args)
		},
	}
}

// onWebhook runs a command whose first argument is a webhook.
func onWebhook(
	a *app.App, do func(context.Context, *apiclient.Client, id.WebhookID, []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
			of, err := webhookNamed(ctx, c, args[0])
			if err != nil {
				return err
			}
			return do(ctx, c, of, args[1:])
		})
	}
}

// webhookNamed finds a webhook by its URL or its ID. An account can have several with the same URL.
func webhookNamed(ctx context.Context, c *apiclient.Client, name string) (id.WebhookID, error) {
	if of, is := app.IDOf[id.WebhookID](name); is {
		return of, nil
	}
	url := name
	if target, err := anyAddress.ParseURL(name); err == nil {
		url = target.URL // as the service writes it
	}
	var found []string
	for w, err := range c.Webhooks.List().All(ctx) {
		if err != nil {
			return "", err
		}
		if w.URL == url {
			found = append(found, string(w.ID))
		}
	}
	switch len(found) {
	case 0:
		return "", app.NotFound{What: "webhook", Name: name}
	case 1:
		return id.WebhookID(found[0]), nil
	}
	return "", app.Next(fmt.Errorf("%d webhooks have the URL %s", len(found), name),
		"name one by its ID: %s", strings.Join(found, ", "))
}

// completeWebhook offers the URLs of webhooks, and the IDs of those that share a URL.
func completeWebhook(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.Names(cmd, func(ctx context.Context, c *apiclient.Client) (names []string, err error) {
			list, err := app.Collected(c.Webhooks.List().All(ctx))
			sharing := map[string]int{}
			for _, w := range list {
				sharing[w.URL]++
			}
			for _, w := range list {
				if sharing[w.URL] > 1 {
					names = append(names, app.Described(string(w.ID), w.URL))
				} else {
					names = append(names, app.Offered(w.URL, string(w.ID), string(enabled(w.Enabled))))
				}
			}
			return names, err
		})
	}
}
