package connect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// Psql makes the command "svc psql".
func Psql(a *app.App) *cobra.Command {
	var to connecting
	cmd := &cobra.Command{
		Use: "psql DATABASE [flags] [-- ARGS]", Short: "Open psql on a database", Args: oneBeforeDash,
		Long: `Open psql, which has to be installed, on a database. What stands behind "--" are its arguments, and its exit status
is that of this command.

` + onConnections + ` As the owner, psql takes the password from PGPASSWORD or a password file, or asks for it on a terminal.

The password that svc gets from the API stands in no list of processes and in no variable: psql reads it from a file without a
name. SVC_API_KEY is not handed on to psql.`,
		Example: `  svc psql shop
  svc psql shop --role readonly -- --csv -c 'SELECT * FROM item' > items.csv
  svc psql shop -- -v ON_ERROR_STOP=1 -f schema.sql`,
		ValidArgsFunction: a.CompleteDatabase,
		RunE: func(cmd *cobra.Command, args []string) error {
			program, err := exec.LookPath("psql")
			if err != nil {
				return app.Next(fmt.Errorf("psql cannot be run: %w", err), "install PostgreSQL's client programs")
			}
			var found connection
			err = a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) (err error) {
				found, err = to.find(ctx, a, c, args[0], true)
				return err
			})
			if err != nil {
				return err
			}
			if found.password == "" && os.Getenv(passwordVariable) == "" {
				a.Note("the API does not show the owner's password: psql takes it from a password file, or asks for it")
			}
			return found.become(program, args[1:])
		},
	}
	to.add(a, cmd)
	return cmd
}

// oneBeforeDash wants one argument, and then "--" before any others.
func oneBeforeDash(cmd *cobra.Command, args []string) error {
	own := len(args)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		own = dash
	}
	if own > 1 {
		return errors.New(`the arguments of psql stand behind "--"`)
	}
	return cobra.MinimumNArgs(1)(cmd, args[:own])
}

// become runs psql in the place of this process: signals and the terminal are its own, and nothing is left to be removed.
func (to connection) become(program string, args []string) error {
	set := to.variables()
	if to.password != "" {
		file, err := unnamedFile(to.passwordLine())
		if err != nil {
			return fmt.Errorf("the password file: %w", err)
		}
		set = append(set, variable{"PGPASSFILE", "/dev/fd/" + strconv.Itoa(file)})
	}
	words := []string{program}
	if terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err != nil {
		words = append(words, "--no-password") // It would take the first line of its input for one.
	} else if err := terminal.Close(); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", program, syscall.Exec(program, append(words, args...), environmentWith(os.Environ(), set)))
}

const passwordVariable = "PGPASSWORD"

// withheld are variables that psql does not get: those that would lead elsewhere than those of a connection, and the API key, of
// which psql and what it runs make no use.
var withheld = []string{"PGHOSTADDR", "PGSERVICE", "SVC_API_KEY"}

// environmentWith replaces variables. Where a password file is set, no other password goes before it.
func environmentWith(environment []string, set []variable) []string {
	gone := slices.Clone(withheld)
	for _, v := range set {
		gone = append(gone, v.name)
		if v.name == "PGPASSFILE" {
			gone = append(gone, passwordVariable)
		}
	}
	environment = slices.DeleteFunc(slices.Clone(environment), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return slices.Contains(gone, name)
	})
	for _, v := range set {
		environment = append(environment, v.name+"="+v.value)
	}
	return environment
}

// passwordLine is the line of a password file for all databases of the pooler that the login may use.
func (to connection) passwordLine() string {
	escaped := strings.NewReplacer(`\`, `\\`, ":", `\:`)
	return escaped.Replace(to.host) + ":" + strconv.Itoa(to.port) + ":*:" +
		escaped.Replace(to.username) + ":" + escaped.Replace(to.password) + "\n"
}

// unnamedFile holds a text in a file that has no name any more when the text is written: it ends with the processes that have it
// open. The descriptor stays open across exec. (libpq reads passwords from regular files with mode 0600 only, so from no pipe.)
func unnamedFile(text string) (descriptor int, err error) {
	f, err := os.CreateTemp("", "svc-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := os.Remove(f.Name()); err != nil {
		return 0, err
	}
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return 0, err
	}
	return unix.Dup(int(f.Fd()))
}
