package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/internal/version"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
	"github.com/pgherd/pgherd/hosts/svc/cli/auth"
	"github.com/pgherd/pgherd/hosts/svc/cli/backups"
	"github.com/pgherd/pgherd/hosts/svc/cli/connect"
	"github.com/pgherd/pgherd/hosts/svc/cli/databases"
	"github.com/pgherd/pgherd/hosts/svc/cli/members"
	"github.com/pgherd/pgherd/hosts/svc/cli/operations"
	"github.com/pgherd/pgherd/hosts/svc/cli/previews"
	"github.com/pgherd/pgherd/hosts/svc/cli/roles"
	"github.com/pgherd/pgherd/hosts/svc/cli/trusts"
	"github.com/pgherd/pgherd/hosts/svc/cli/webhooks"
)

// Main runs the command that the process was started with, and exits with its status.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second Ctrl-C ends the process at once.
	status := run(ctx, Root(), os.Stderr)
	stop()
	os.Exit(status)
}

func run(ctx context.Context, root *cobra.Command, stderr io.Writer) (status int) {
	err := root.ExecuteContext(ctx)
	if err == nil {
		return app.StatusDone
	}
	if errors.Is(err, app.ErrSaid) {
		return app.StatusRefused
	}
	text, status := app.Explain(err, app.ScreenOf(stderr).Width)
	_, _ = fmt.Fprintln(stderr, terminal.VisibleLines(text)) // There is nowhere else to say it.
	return status
}

func init() { cobra.EnableCommandSorting = false }

// Root makes the command svc with all commands below it.
func Root() *cobra.Command {
	a := &app.App{}
	root := &cobra.Command{
		Use:   "svc COMMAND",
		Short: "Work with managed PostgreSQL databases",
		Long: `Work with managed PostgreSQL databases, their backups, logins and members, through the API of the service.

Log in once with "svc auth login", or set SVC_BASE_URL and SVC_API_KEY. A database is named by its name or its ID.`,
		Version:               version.Build(),
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		SilenceErrors:         true,
		PersistentPreRunE:     func(cmd *cobra.Command, _ []string) error { return a.Begin(cmd) },
	}
	root.SetFlagErrorFunc(wrongFlag)
	root.SetUsageFunc(showUsage)
	a.AddFlags(root.PersistentFlags())
	root.AddCommand(
		// One to a line, in the order of the documentation.
		auth.Command(a),
		databases.Command(a),
		databases.Usage(a),
		backups.Command(a),
		operations.Command(a),
		members.Command(a),
		members.Invitations(a),
		webhooks.Command(a),
		previews.Command(a),
		trusts.Command(a),
		connect.Psql(a),
		connect.Command(a),
		roles.Managed(a),
		roles.Legacy(a),
		completion(),
	)
	root.CompletionOptions.DisableDefaultCmd = true // It is "completion" above.
	strict(root)
	strictHelp(root)
	return root
}

// strictHelp has "svc help" with what is no command answered as wrong usage.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err) // it was added above
	}
	help.Run, help.RunE = nil, func(cmd *cobra.Command, args []string) error {
		about, rest, err := root.Find(args)
		if err == nil && len(rest) == 0 {
			about.InitDefaultHelpFlag() // so that it is shown
			about.InitDefaultVersionFlag()
			return about.Help()
		}
		return unknownBelow(about, rest)
	}
}

// strict has wrong arguments answered as wrong usage, and a group that is called without a command of it as well.
func strict(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return wrongArguments(cmd, args, err)
			}
			return nil
		}
	}
	if c.HasSubCommands() && c.RunE == nil && c.Run == nil {
		c.Args = cobra.ArbitraryArgs
		c.RunE = unknownBelow
	}
	for _, below := range c.Commands() {
		strict(below)
	}
}

// unknownBelow is what a group does: it shows its help where it is called alone, and else says what it does not know.
func unknownBelow(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	text := fmt.Sprintf("%q is no command of %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	similar := cmd.SuggestionsFor(args[0])
	for _, like := range similar {
		text += fmt.Sprintf("\ndid you mean %q?", cmd.CommandPath()+" "+like)
	}
	if len(similar) == 0 {
		text += "\nsee: " + cmd.CommandPath() + " --help"
	}
	return app.Usage("%s", text)
}
