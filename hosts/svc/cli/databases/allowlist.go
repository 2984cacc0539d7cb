package databases

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func allowlist(a *app.App) *cobra.Command {
	return app.Group("allowlist", "Say from which addresses a database may be connected to",
		allowlistList(a),
		allowlistAdd(a),
		allowlistRemove(a),
	)
}

func allowlistList(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "list DATABASE", Short: "List the addresses that may connect; any may where there are none", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteDatabase,
		RunE: a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
			const none = "No entries: any address may connect."
			return app.ShowAll(a, app.Sequence(c.Allowlist.List(ctx, of)), none, func(e wire.AllowlistEntry) []app.Field {
				return []app.Field{
					{"CIDR", e.CIDR}, {"DESCRIPTION", e.Description}, {"CREATED", e.CreatedAt}, {"ID", e.ID},
				}
			})
		}),
	}
}

func allowlistAdd(a *app.App) *cobra.Command {
	var description string
	cmd := &cobra.Command{
		Use: "add DATABASE CIDR", Short: "Let an address or a network connect", Args: cobra.ExactArgs(2),
		Long: `Let an address or a network connect, as in 198.51.100.7 or 2001:db8::/32. With the first entry, no other address may
connect any more, and open connections from others are closed: it wants the name of the database typed.`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := database.ParseCIDR(args[1]); err != nil {
				return app.Usage("%w", err)
			}
			b := wire.AddAllowlistEntry{CIDR: args[1]}
			if description != "" {
				b.Description = &description
			}
			var which id.DatabaseID
			open := false
			err := a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				which = of
				list, err := c.Allowlist.List(ctx, of)
				open = len(list) == 0
				return err
			})(cmd, args)
			if err != nil {
				return err
			}
			if open {
				what := "This is the first entry: it closes the connections to " + args[0] + " from everywhere else, and lets none in."
				if err := a.Ask(args[0], what); err != nil {
					return err
				}
			}
			return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
				added, err := c.Allowlist.Add(ctx, which, b)
				return a.Done(added, err, "%s may connect to %s.", added.CIDR, args[0])
			})
		},
	}
	cmd.Flags().StringVar(&description, "description", "", "what the entry is for, at most 200 characters")
	return a.Confirmed(cmd)
}

func allowlistRemove(a *app.App) *cobra.Command {
	return a.Confirmed(&cobra.Command{
		Use: "remove DATABASE CIDR|ID", Short: "Remove an entry, and close its connections", Args: cobra.ExactArgs(2),
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, is := app.IDOf[id.AllowlistEntryID](args[1]); !is {
				if _, err := database.ParseCIDR(args[1]); err != nil {
					return app.Usage("%w", err)
				}
			}
			what := "This closes the connections from " + args[1] + ", or lets any address connect if it is the last entry."
			if err := a.Ask(args[1], what); err != nil {
				return err
			}
			return a.OnDatabase(func(ctx context.Context, c *apiclient.Client, of id.DatabaseID, _ []string) error {
				entry, err := entryNamed(ctx, c, of, args[1])
				if err != nil {
					return err
				}
				err = c.Allowlist.Remove(ctx, of, entry)
				return a.Done(map[string]string{"id": string(entry)}, err, "%s was removed from the allowlist of %s.", args[1], args[0])
			})(cmd, args)
		},
	})
}

// entryNamed finds an entry by its network or its ID.
func entryNamed(ctx context.Context, c *apiclient.Client, of id.DatabaseID, name string) (id.AllowlistEntryID, error) {
	if entry, is := app.IDOf[id.AllowlistEntryID](name); is {
		return entry, nil
	}
	network, err := database.ParseCIDR(name)
	if err != nil {
		return "", app.Usage("%w", err)
	}
	list, err := c.Allowlist.List(ctx, of)
	if err != nil {
		return "", err
	}
	for _, e := range list {
		if e.CIDR == network.String() {
			return e.ID, nil
		}
	}
	return "", app.NotFound{What: "entry", Name: name}
}
