package app

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// completionTime is how long a shell waits for names from the API at most.
const completionTime = 2 * time.Second

// CompleteDatabase offers the names of databases for the first argument.
func (a *App) CompleteDatabase(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.Names(cmd, func(ctx context.Context, c *apiclient.Client) (names []string, err error) {
		for d, err := range c.Databases.List().All(ctx) {
			if err != nil {
				return nil, err
			}
			names = append(names, Described(d.Name, d.DisplayName))
		}
		return names, nil
	})
}

// Described is a completion with what a shell says beside it.
func Described(name, what string) string {
	if what == name {
		return name
	}
	return name + "\t" + what
}

// Offered is a completion by a name that somebody has chosen. Where a shell would not take it as one word, another name is
// offered, with it beside.
func Offered(name, otherwise, what string) string {
	if !plain(name) {
		return Described(otherwise, name)
	}
	return Described(name, what)
}

// plain reports whether a name is one word to every shell, and no flag.
func plain(name string) bool { return plainWord.MatchString(name) && !strings.HasPrefix(name, "-") }

// harmless are those completions that every shell inserts as they are. Where there are several, that of bash quotes none: a name
// that another member of a database has chosen could be a command.
func harmless(list []string) (kept []string) {
	for _, one := range list {
		if name, what, _ := strings.Cut(one, "\t"); plain(name) {
			kept = append(kept, Described(name, First(terminal.Visible(what), name)))
		}
	}
	return kept
}

// Names are what the API knows, for a shell to complete. A shell is told of no error: it would stand in the middle of the line.
func (a *App) Names(
	cmd *cobra.Command, list func(context.Context, *apiclient.Client) ([]string, error),
) ([]string, cobra.ShellCompDirective) {
	if err := a.Begin(cmd); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.Err.Writer, a.timeout = io.Discard, completionTime
	var names []string
	err := a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) (err error) {
		names, err = list(ctx, c)
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return harmless(names), cobra.ShellCompDirectiveNoFileComp
}

// CompleteDatabaseAnd offers the names of databases for the first argument, and these values for the second.
func (a *App) CompleteDatabaseAnd(values ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return values, cobra.ShellCompDirectiveNoFileComp
		}
		return a.CompleteDatabase(cmd, args, typed)
	}
}
