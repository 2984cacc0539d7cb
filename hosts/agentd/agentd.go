// Package agentd is the host of the agent: it runs beside PostgreSQL and PgBouncer on a database server.
package agentd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/blob/s3"
	"github.com/pgherd/pgherd/agent/commons"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/poolermem"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/internal/version"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

// Settings of the agent host.
type Settings struct {
	Agent agent.Config
	// S3 is where backups are kept; without an Endpoint, in Agent.BackupDir.
	S3          s3.Config
	Archive     Archive
	PoolerUser  string
	PoolerGroup string
	// TLSCertFile and TLSKeyFile are PEM files.
	TLSCertFile, TLSKeyFile string
	// Secret is what the control plane has to show, or SecretFile has it.
	Secret, SecretFile string
	OpsListen          string
	Traces             wiring.Traces
	LogLevel           string
}

// Command is "pgherd agent", with what is done once below it.
func Command() *cobra.Command {
	s := Settings{Agent: agent.Config{Pooler: pooler.DefaultSettings()}}
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "serve the control plane on a database server, beside PostgreSQL and PgBouncer",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.load(cmd); err != nil {
				return err
			}
			wiring.ArmAgent()
			return wiring.Run(cmd.Context(), Module(s))
		},
	}
	s.flags(cmd)
	cmd.AddCommand(initCommand(), pushCommand(), recoverCommand())
	return cmd
}

func (s *Settings) flags(cmd *cobra.Command) {
	f, a, p := cmd.Flags(), &s.Agent, &s.Agent.Pooler
	f.StringVar(&a.Name, "server-name", "",
		"what the log calls this server, such as its name in pgherd admin server list; the machine's name if not set")
	f.StringVar(&a.Listen, "listen", "127.0.0.1:8090", "address of the agent's HTTPS listener")
	f.StringVar(&s.TLSCertFile, "tls-cert-file", "", "certificate of the agent in PEM")
	f.StringVar(&s.TLSKeyFile, "tls-key-file", "", "private key of the certificate")
	f.StringVar(&s.Secret, "agent-secret", "", "shared secret that the control plane sends; prefer --agent-secret-file")
	f.StringVar(&s.SecretFile, "agent-secret-file", "", "file with the shared secret and, while it is exchanged, the former one "+
		"in a second line; it is read again when it changes")
	f.StringVar(&a.CredentialsFile, "credentials-file", "", "file that pgherd agent init wrote")
	f.StringVar(&a.PostgresHost, "postgres-host", "127.0.0.1", "loopback address or socket folder of PostgreSQL")
	f.IntVar(&a.PostgresPort, "postgres-port", 5432, "port of PostgreSQL")
	f.StringVar(&p.Dir, "pooler-dir", "", "folder of PgBouncer's files; start PgBouncer with pgbouncer.ini in it")
	f.StringVar(&p.SocketDir, "pooler-socket-dir", "", "folder of PgBouncer's socket, which only PgBouncer and the agent may enter")
	f.StringSliceVar(&p.ListenAddresses, "pooler-listen", []string{"0.0.0.0", "::"},
		"addresses that customers connect to; names are looked up when the agent starts, and by PgBouncer when it does")
	f.IntVar(&p.ListenPort, "pooler-port", 6432, "port that customers connect to")
	f.StringVar(&p.TLSCertFile, "pooler-tls-cert-file", "", "certificate of PgBouncer in PEM, for the public host name")
	f.StringVar(&p.TLSKeyFile, "pooler-tls-key-file", "", "private key of the certificate")
	f.StringVar(&s.PoolerUser, "pooler-user", "", "system user of PgBouncer, where the agent runs as root")
	f.StringVar(&s.PoolerGroup, "pooler-group", "",
		"system group of PgBouncer, where the agent is another user of that group and not root: the group may read PgBouncer's files")
	f.IntVar(&p.MaxClients, "pooler-max-clients", p.MaxClients, "most client connections that PgBouncer accepts")
	f.IntVar(&p.MaxPacket, "pooler-max-packet", p.MaxPacket,
		"most bytes of one message or row that PgBouncer lets through, from 1 MiB to 1 GiB - 64; large ones hold up everybody")
	f.Int64Var(&a.PoolerMemory, "pooler-memory", poolermem.DefaultBound,
		"bytes of memory with which PgBouncer's clients are ended for what they hold, of accounts with more than their share")
	f.BoolVar(&p.ResetAlways, "pooler-reset-always", p.ResetAlways,
		"reset a server session after each transaction; without it, clients of <name>.transaction see each other's session state")
	f.StringVar(&a.BackupDir, "backup-dir", "",
		"folder of this agent alone, for backups and uploads; with --s3-endpoint, only of those that are on their way")
	settings.ObjectStore(cmd, &s.S3)
	f.DurationVar(&a.BackupPatience, "backup-patience", 15*time.Minute,
		"how long a backup waits in the folder where the object store does not answer; it fails then")
	f.Int64Var(&a.BackupReserve, "backup-reserve", 0,
		"bytes that backups leave free on their file system and on the databases'; 0 means 1 GiB")
	f.BoolVar(&a.BackupCountsOnly, "backup-counts-only", false,
		"compare restored copies by numbers of rows only; digests of contents, which this leaves out, take time and find a changed row")
	backupLimits(f, &a.BackupLimits)
	s.Archive.flags(f)
	f.IntVar(&a.Jobs, "jobs", jobs.DefaultSlots,
		"how many backups and other long jobs run at a time, 2 or more; of these one account has at most half")
	f.Int64Var(&a.Commons.TransactionIDs, "transaction-ids", commons.DefaultTransactionIDs,
		"how many transaction IDs may be taken while a customer's transaction keeps them from being reused; it is ended then")
	f.StringVar(&a.PgDump, "pg-dump", "pg_dump", "path of pg_dump 16 or later")
	f.StringVar(&a.DataDir, "data-dir", "/var/lib/postgresql",
		"folder of PostgreSQL's data; health reports its file system, which needs room for the copy that verifies a backup")
	acceptVersions(f, &a.Versions.Accept)
	acceptLanguages(f, &a.Languages.Accept)
	f.StringVar(&s.OpsListen, "ops-listen", "127.0.0.1:8091", "address of /livez, /readyz and /metrics")
	s.Traces.Flags(cmd)
	f.StringVar(&s.LogLevel, "log-level", "info", "debug, info, warn or error")
}

func backupLimits(f *pflag.FlagSet, l *backup.Limits) {
	*l = backup.DefaultLimits
	f.DurationVar(&l.Dump, "dump-time", l.Dump, "how long a dump may take; the backup fails then")
	f.IntVar(&l.VerifyFactor, "verify-factor", l.VerifyFactor,
		"how many times the dump's time the verification of a backup may take; the backup is not verified then")
	f.DurationVar(&l.VerifyLeast, "verify-least", l.VerifyLeast, "how long a verification may take in any case")
}

// acceptVersions is a flag of the agent and of its init.
func acceptVersions(f *pflag.FlagSet, into *[]string) {
	f.StringSliceVar(into, "accept-versions", nil, "versions with known holes, exactly as the refusal prints them, "+
		"in which your distribution has mended these holes")
}

// acceptLanguages is a flag of the agent and of its init.
func acceptLanguages(f *pflag.FlagSet, into *[]string) {
	f.StringSliceVar(into, "accept-languages", nil, "trusted procedural languages besides plpgsql, by their exact names, such as "+
		"plperl, that customers may use although a session with an endless loop in one cannot be ended")
}

func (s *Settings) load(cmd *cobra.Command) error {
	err := settings.Require(cmd, "tls-cert-file", "tls-key-file", "credentials-file", "pooler-dir",
		"pooler-socket-dir", "pooler-tls-cert-file", "pooler-tls-key-file", "backup-dir")
	if err == nil && s.Secret == "" {
		err = settings.Require(cmd, "agent-secret-file")
	}
	if err == nil {
		s.Agent.PoolerOwner, err = s.poolerOwner(os.Geteuid() == 0)
	}
	if err != nil {
		return err
	}
	if s.Agent.Name == "" {
		s.Agent.Name, _ = os.Hostname() // empty where the system does not say it
	}
	s.Agent.Pooler.GroupSocket = s.PoolerGroup != ""
	if s.Agent.Blobs, err = settings.OpenObjectStore(cmd, s.S3); err != nil {
		return err
	}
	if s.S3.Endpoint != "" {
		s.Agent.Bucket = &s.S3
	}
	s.Agent.Archive = s.Archive.wanted()
	return s.check()
}

// poolerOwner is who reads PgBouncer's files; nil where that is the agent's own user.
func (s *Settings) poolerOwner(root bool) (*pooler.Owner, error) {
	switch {
	case root && s.PoolerUser == "":
		return nil, errors.New("--pooler-user (or PGHERD_POOLER_USER) is required where the agent runs as root: PgBouncer and " +
			"pg_dump run as it")
	case s.PoolerUser != "" && s.PoolerGroup != "":
		return nil, errors.New("--pooler-user is for an agent that runs as root, and --pooler-group for one that does not: give one")
	case s.PoolerUser != "":
		owner, err := ownerOf("pooler-user", s.PoolerUser)
		if err == nil && owner.UID == 0 {
			err = fmt.Errorf("--pooler-user: %s is root, as whom neither PgBouncer nor pg_dump may run: give another system user",
				s.PoolerUser)
		}
		return owner, err
	case s.PoolerGroup != "":
		return groupOf("pooler-group", s.PoolerGroup)
	}
	return nil, nil
}

// groupOf looks up the system group that a flag names. The agent must be of it: else it could not let it read files.
func groupOf(flag, name string) (*pooler.Owner, error) {
	g, err := user.LookupGroup(name)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	gid, err := strconv.Atoi(g.Gid)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	mine, err := os.Getgroups()
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	if os.Getegid() != gid && !slices.Contains(mine, gid) {
		return nil, fmt.Errorf("--%s: the agent is not of the group %s: add its system user to it (usermod --append --groups %s "+
			"USER), and start the agent again", flag, name, name)
	}
	return &pooler.Owner{GID: gid, Group: true}, nil
}

// ownerOf looks up the system user that a flag names.
func ownerOf(flag, name string) (*pooler.Owner, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	return &pooler.Owner{UID: uid, GID: gid}, errors.Join(uidErr, gidErr)
}

// Module is the agent host.
func Module(s Settings) fx.Option {
	return fx.Module("agent",
		fx.Provide(
			func() (*zap.Logger, error) { return wiring.NewLog(s.LogLevel) },
			func() (certificates, error) { return s.openCertificates() },
			s.openSecrets,
			s.open,
		),
		fx.Provide(
			// All agents' figures of a server have its name, by which alerts can say it.
			func() metrics.Registry { return wiring.NewRegistry().Labelled("server", s.Agent.Name) },
			func(lc fx.Lifecycle, log *zap.Logger, r metrics.Registry) (trace.Tracer, error) {
				return s.Traces.Open(lc, log, r, "agent")
			},
			func(r metrics.Registry, a *agent.Agent, log *zap.Logger) *wiring.Ops {
				return wiring.NewOps(r, []wiring.Check{
					ready("in charge", "the agent is not yet in charge of its server", a.InCharge),
					ready("PgBouncer", "PgBouncer does not answer", a.PoolerAnswers),
				}, log)
			},
		),
		fx.Invoke(
			Attach,
			keepFiles,
			func(r metrics.Registry, a *agent.Agent) error { return Measure(r, func() Measured { return a }) },
			func(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, o *wiring.Ops) {
				wiring.Listen(lc, stop, log, wiring.Address{Part: "operations", Flag: "ops-listen", Address: s.OpsListen}, o)
			},
		),
	)
}

// open makes the agent with its listener, so that a port in use fails the start.
func (s *Settings) open(
	log *zap.Logger, c certificates, k *secrets, r metrics.Registry, t trace.Tracer,
) (*agent.Agent, error) {
	s.Agent.Version, s.Agent.Certificate, s.Agent.Secrets = version.Version(), c.own.Certificate, k.accepted
	ln, err := wiring.Address{Part: "agent", Flag: "listen", Address: s.Agent.Listen}.Open(context.Background())
	if err != nil {
		return nil, err
	}
	a, err := agent.New(s.Agent, agent.Deps{
		Log: log, Listener: ln, Now: system.NewClock().Now, Metrics: r.Handler(), Tracer: t,
	})
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return a, nil
}

// ready is a check of an agent that fails with a reason until something holds.
func ready(name, reason string, holds func() bool) wiring.Check {
	return wiring.Check{Name: name, Run: func(context.Context) error {
		if !holds() {
			return errors.New(reason)
		}
		return nil
	}}
}

// Attach ties an agent to the life of a host.
func Attach(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, a *agent.Agent) {
	wiring.Attach(lc, stop, log, wiring.Part{Name: "agent", Run: func(ctx context.Context) error { return a.Run(ctx) }})
}
