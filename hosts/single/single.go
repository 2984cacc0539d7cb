// Package single is "pgherd setup": a whole pgherd on one machine with Debian's packages. It does what docs/operate/production.md
// has an operator do by hand on two machines, with the same files, users and units.
package single

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/hosts/internal/settings"
)

// wanted is what the operator says.
type wanted struct {
	host  string // by which customers reach the machine
	email string // of the first account's owner
	name  string
	plan  string
	// versions and languages are what the operator accepts, as "agent init" takes it.
	versions, languages []string
}

// Command is "pgherd setup".
func Command() *cobra.Command {
	var s wanted
	cmd := &cobra.Command{
		Use: "setup", Short: "set up a whole pgherd on this machine, from the packages", Args: cobra.NoArgs,
		Long: "Set up a whole pgherd on this machine, which has Debian's packages of pgherd, PostgreSQL 16 and PgBouncer, and no\n" +
			"databases yet. Customers' databases are in the cluster 16/main, the metadata in a cluster of their own, 16/pgherd.\n" +
			"Certificates are of an authority that is made for it, /etc/pgherd/ca; those that you put in place stay. The first\n" +
			"account gets an API key, which svc keeps for the caller in a profile that has the machine's name; another administrator\n" +
			"who runs the command gets another one. To be run by root, on a machine that systemd has booted.\n\n" +
			"Debian's PgBouncer is stopped and disabled: pgherd-pooler runs in its place. A machine is refused where that one serves\n" +
			"databases of its own, where 16/main has some, and where an agent or a control plane was set up by hand.\n\n" +
			"What is there already stays as it is: the command can be run again, goes on where it was cut off, says what it changes,\n" +
			"and renews certificates of its own that end within 30 days. PostgreSQL is restarted only while no customer has a\n" +
			"database; later the command says that a restart is pending. Before it changes anything it checks what it was given.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.Require(cmd, "public-host", "email"); err != nil {
				return err
			}
			if os.Geteuid() != 0 {
				return errors.New("setup makes files of several users: run it as root")
			}
			syscall.Umask(0o022) // whoever connects reads the authority's certificate
			m, err := thisMachine(cmd.OutOrStdout(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return m.setUp(cmd.Context(), s)
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.host, "public-host", "", "name by which customers and callers of the API reach this machine")
	f.StringVar(&s.email, "email", "", "mail address of the owner of the first account")
	f.StringVar(&s.name, "name", "Owner", "name of that owner")
	f.StringVar(&s.plan, "plan", string(account.Business), "plan of the first account: pro or business")
	f.StringSliceVar(&s.versions, "accept-versions", nil, "versions with known holes, exactly as the refusal prints them, in which "+
		"your distribution has mended these holes")
	f.StringSliceVar(&s.languages, "accept-languages", nil, "trusted procedural languages besides plpgsql that customers may use")
	return cmd
}

const (
	poolerPort = 6432
	// agentListen is where nobody but this machine reaches the agent.
	agentListen = "127.0.0.1:8090"
	// firstServer is what the machine's PostgreSQL is called, in records and metrics.
	firstServer = "db1"
)

// check refuses what cannot be meant, before anything is changed.
func (s wanted) check() error {
	record := server.Server{AgentURL: "https://" + agentListen, PublicHost: s.host, PublicPort: poolerPort, Capacity: 1}
	if err := record.Validate(); err != nil {
		return fmt.Errorf("--public-host: %w", err)
	}
	if _, err := account.ValidateEmail(s.email); err != nil {
		return fmt.Errorf("--email: %w", err)
	}
	if _, err := account.ValidateName(s.name); err != nil {
		return fmt.Errorf("--name: %w", err)
	}
	if plan, err := account.ParsePlan(s.plan); err != nil || !plan.AllowsAPI() {
		return errors.New("--plan must be pro or business: others have no API")
	}
	return errors.Join(floors.Policy{Accept: s.versions}.CheckVersions(), floors.Policy{Accept: s.languages}.CheckLanguages())
}

// step is a part of the work. Where it was done before, it changes nothing.
type step struct {
	name string
	do   func(context.Context, wanted) error
}

// setUp does everything that is not done yet.
func (m *machine) setUp(ctx context.Context, s wanted) error {
	if err := s.check(); err != nil {
		return err
	}
	if err := m.check(ctx, s); err != nil {
		return err
	}
	for _, step := range []step{
		{"certificate authority", m.authority},
		{"PostgreSQL's settings", m.postgresSettings},
		{"PostgreSQL's logins of the platform", m.prepareServer},
		{"certificates", m.certificates},
		{"agent and PgBouncer", m.startAgent},
		{"the database of the metadata", m.metadataDatabase},
		{"key ring and schema", m.metadata},
		{"the server's record", m.registerServer},
		{"API and batch host", m.startControlPlane},
		{"the first account and its key", m.firstAccount},
	} {
		_, _ = fmt.Fprintln(m.out, "setup:", step.name)
		if err := step.do(ctx, s); err != nil {
			return fmt.Errorf("%s: %w (what is done stays; the same command goes on from there)", step.name, err)
		}
	}
	url, err := m.apiURL(s)
	if err != nil {
		return err
	}
	how := "pgherd is set up."
	if m.changes == 0 {
		how = "pgherd was set up before: no file, certificate, unit, database, record or key has changed."
	}
	_, err = fmt.Fprintf(m.out, ready, how, url, m.path(caFile), m.path(keyringFile))
	return err
}

const ready = `
%s

  API       %s
  CA file   %s   (for whoever connects)
  key ring  %s   (back it up apart from the metadata: without it, stored passwords are lost)
`
