package cli

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

// completeDatabase offers the names of databases for the first argument.
func (a *app) completeDatabase(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.names(cmd, func(ctx context.Context, c *apiclient.Client) (names []string, err error) {
		for d, err := range c.Databases.All(ctx) {
			if err != nil {
				return nil, err
			}
			names = append(names, described(d.Name, d.DisplayName))
		}
		return names, nil
	})
}

// described is a completion with what a shell says beside it.
func described(name, what string) string {
	if what == name {
		return name
	}
	return name + "\t" + what
}

// offered is a completion by a name that somebody has chosen. Where a shell would not take it as one word, another name is
// offered, with it beside.
func offered(name, otherwise, what string) string {
	if !plain(name) {
		return described(otherwise, name)
	}
	return described(name, what)
}

// plain reports whether a name is one word to every shell, and no flag.
func plain(name string) bool { return plainWord.MatchString(name) && !strings.HasPrefix(name, "-") }

// harmless are those completions that every shell inserts as they are. Where there are several, that of bash quotes none: a name
// that another member of a database has chosen could be a command.
func harmless(list []string) (kept []string) {
	for _, one := range list {
		if name, what, _ := strings.Cut(one, "\t"); plain(name) {
			kept = append(kept, described(name, first(terminal.Visible(what), name)))
		}
	}
	return kept
}

// names are what the API knows, for a shell to complete. A shell is told of no error: it would stand in the middle of the line.
func (a *app) names(
	cmd *cobra.Command, list func(context.Context, *apiclient.Client) ([]string, error),
) ([]string, cobra.ShellCompDirective) {
	if err := a.begin(cmd); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.err.Writer, a.timeout = io.Discard, completionTime
	var names []string
	err := a.withAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) (err error) {
		names, err = list(ctx, c)
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return harmless(names), cobra.ShellCompDirectiveNoFileComp
}

// completeDatabaseAnd offers the names of databases for the first argument, and these values for the second.
func (a *app) completeDatabaseAnd(values ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return values, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completeDatabase(cmd, args, typed)
	}
}
