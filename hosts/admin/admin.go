// Package admin is "pgherd admin": the commands of the service's operators. They work directly on the metadata database;
// whoever has its password may run them all.
package admin

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
	"github.com/pgherd/pgherd/ports"
)

// metadata is where the commands work, with the settings that they share.
type metadata struct {
	url     string
	keyring string
	json    bool
	mail    wiring.Mail             // of the commands that send any
	yes     bool                    // what a command asks is answered
	typed   func(in io.Reader) bool // whether somebody types what is read
}

// Command is "pgherd admin".
func Command() *cobra.Command { return commandAt(onTerminal) }

// commandAt is Command where typed tells whether somebody types what is read.
func commandAt(typed func(in io.Reader) bool) *cobra.Command {
	m := &metadata{typed: typed}
	cmd := group("admin", "manage accounts, keys, servers and switches in the metadata database",
		m.account(), m.user(), m.operators(), m.key(), m.namespace(), m.ciKey(), m.ciTrust(), m.server(), m.forward(), m.storage(),
		m.drills(), m.feature(), m.maintenance(), m.enroll(), m.unenroll(), m.legacyRoles(), m.database(), m.backup(), m.member(),
		m.extensions(), m.operation(), m.change(), m.usage(), m.audit(), m.secrets(), m.certificateKey(), m.doctor(), m.behind(),
		m.installation())
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		return errors.Join(settings.Apply(cmd), settings.RefuseDevelopmentOnly())
	}
	f := cmd.PersistentFlags()
	f.StringVar(&m.url, "metadata-url", "", "PostgreSQL URL of the metadata database")
	f.StringVar(&m.keyring, "keyring-file", "", "key ring that encrypts the stored secrets; only commands that use secrets need it")
	f.BoolVar(&m.json, "json", false, "print JSON")
	escapeErrors(cmd)
	return cmd
}

// group is a command that only holds others: alone it prints its help, and a word that is none of its commands is an error.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// command is a command without arguments and flags of its own.
func (m *metadata) command(
	use, short string, do func(context.Context, *operator.Operator) (output, error),
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return m.work(cmd, do) },
	}
}

// work runs a command on the operator's use cases, and shows its output.
func (m *metadata) work(cmd *cobra.Command, do func(context.Context, *operator.Operator) (output, error)) error {
	return m.operate(cmd, func(ctx context.Context, o *operator.Operator) error {
		found, err := do(ctx, o)
		if err != nil {
			return err
		}
		return m.show(cmd, found)
	})
}

// operate runs a command on the operator's use cases, in the name of who runs it.
func (m *metadata) operate(cmd *cobra.Command, do func(context.Context, *operator.Operator) error) error {
	if err := settings.Require(cmd, "metadata-url"); err != nil {
		return err
	}
	ctx := base.ByOperator(cmd.Context(), base.Mandate{Operator: person()})
	console := wiring.Console{MetadataURL: m.url, Box: m.box, Clock: system.NewClock(), Mailer: m.mail.Outbox()}
	return console.Operate(ctx, do)
}

// box loads the key ring where one is given. Most commands touch no secret and need none.
func (m *metadata) box() (ports.SecretBox, error) {
	if m.keyring == "" {
		return noKeyring{}, nil
	}
	return secretbox.Load(m.keyring)
}

// noKeyring refuses to seal or open.
type noKeyring struct{}

var errNoKeyring = errors.New("this command needs the key ring: --keyring-file or " + settings.Variable("keyring-file"))

func (noKeyring) Seal([]byte, string) ([]byte, error) { return nil, errNoKeyring }
func (noKeyring) Open([]byte, string) ([]byte, error) { return nil, errNoKeyring }
