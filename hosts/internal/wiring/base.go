package wiring

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/adapters/guarded"
	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/adapters/oidc"
	"github.com/pgherd/pgherd/adapters/passwords"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/adapters/webhooksender"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/retention"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/internal/version"
	"github.com/pgherd/pgherd/ports"
)

// Settings are what the hosts of the control plane share.
type Settings struct {
	Kind        string // "api", "batch": what others call the host
	MetadataURL string
	KeyringFile string
	OpsListen   string
	LogLevel    string
	// UnverifiedPlans are the plans whose backups are not verified.
	UnverifiedPlans []string
	// PITR is how many days back recovery to a point in time reaches, by plan; nil for the use cases' own default.
	PITR map[string]int
	// DefaultPostgres is the major version of PostgreSQL of a database whose creation and account say none.
	DefaultPostgres int
	// DefaultSchedule is that of a database whose creation names none; empty for the use cases' own default.
	DefaultSchedule string
	// Retention is how long what is over stays; a missing kind has its default.
	Retention retention.Policy
	// RecoveryWindow is how long a deleted database can be recovered; 0 for the use cases' own default.
	RecoveryWindow time.Duration
	// Webhooks is for the development host to change; every other host sends to public addresses only. Where webhooks may go,
	// issuers of CI tokens may be asked.
	Webhooks webhooksender.Options
	// RefusedNetworks are further networks where webhooks may not go, in CIDR notation.
	RefusedNetworks []string
	Mail            Mail
	Dashboard       Dashboard
	// SignOn is for hosts with pages, which give it its flags.
	SignOn SignOn
	Traces Traces
	// LeaseHold is how long a worker may be silent before another takes its work; 0 for the use cases' own default.
	LeaseHold time.Duration
	Limits    map[ratelimit.Class]ratelimit.Limit
	// DownloadsPerAccount is how many downloads an account may have at an API host; 0 for the use cases' own default.
	DownloadsPerAccount int
}

// Flags gives a command the shared settings.
func (s *Settings) Flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.MetadataURL, "metadata-url", "", "PostgreSQL URL of the metadata database")
	cmd.Flags().StringVar(&s.KeyringFile, "keyring-file", "", "key ring that stored secrets are encrypted with")
	cmd.Flags().StringVar(&s.OpsListen, "ops-listen", "127.0.0.1:8081", "address of /livez, /readyz and /metrics")
	cmd.Flags().StringSliceVar(&s.UnverifiedPlans, "unverified-plans", nil, "plans whose backups are not verified")
	defaults := map[string]int{}
	for plan, days := range account.DefaultPITR() {
		defaults[string(plan)] = days
	}
	cmd.Flags().StringToIntVar(&s.PITR, "pitr", defaults, "how many days back recovery to a point in time reaches, by plan; a plan "+
		"that is not named has none; the same for all hosts")
	pitr := cmd.Flags().Lookup("pitr")
	plans := strings.Split(strings.Trim(pitr.DefValue, "[]"), ",")
	slices.Sort(plans) // else help and settings files differ each time
	pitr.DefValue = strings.Join(plans, ",")
	cmd.Flags().DurationVar(&s.RecoveryWindow, "recovery-window", deletion.DefaultWindow,
		"how long a deleted database can be recovered, until it is purged; the same for all hosts")
	cmd.Flags().StringVar(&s.DefaultSchedule, "default-schedule", string(database.Daily),
		"daily or none: whether a database gets daily backups whose creation does not say; the same for all API hosts")
	cmd.Flags().IntVar(&s.DefaultPostgres, "default-postgres", pgversion.Default, fmt.Sprintf("major version of PostgreSQL of a "+
		"database whose creation and account do not say one, %d to %d; the same for all hosts", pgversion.Oldest, pgversion.Newest))
	cmd.Flags().DurationVar(&s.LeaseHold, "lease-hold", work.DefaultLeaseHold,
		"how long a worker may be silent before another takes its work; the same for all hosts")
	cmd.Flags().StringSliceVar(&s.RefusedNetworks, refusedNetworks, nil,
		"public networks of your own where webhooks may not go, such as 203.0.113.0/24; private ones, agents and the metadata "+
			"database are refused anyway")
	s.Mail.Flags(cmd)
	s.Traces.Flags(cmd)
	cmd.Flags().StringVar(&s.LogLevel, "log-level", "info", "debug, info, warn or error")
}

// minLeaseHold leaves a busy host the time to renew what it holds.
const minLeaseHold = time.Second

// Check returns an error where something is missing, or is not for this host.
func (s *Settings) Check(cmd *cobra.Command) error {
	if s.LeaseHold < minLeaseHold {
		return fmt.Errorf("--lease-hold must be at least %s", minLeaseHold)
	}
	if _, err := database.ParseSchedule(s.DefaultSchedule); err != nil {
		return fmt.Errorf("--default-schedule must be daily or none")
	}
	if !pgversion.Supported(s.DefaultPostgres) {
		return fmt.Errorf("--default-postgres must be %d to %d", pgversion.Oldest, pgversion.Newest)
	}
	if err := deletion.CheckWindow(s.RecoveryWindow); err != nil {
		return fmt.Errorf("--recovery-window: %w", err)
	}
	if err := s.pitr().Check(); err != nil {
		return fmt.Errorf("--pitr: %w", err)
	}
	if err := settings.RefuseDevelopmentOnly(); err != nil {
		return err
	}
	if _, _, err := s.Mail.open(); err != nil {
		return err
	}
	if _, err := s.Traces.config(); err != nil {
		return err
	}
	origin, err := s.Dashboard.Origin(s.Mail.Dashboard)
	if err != nil {
		return err
	}
	if _, _, err := s.SignOn.open(oidc.Options{Clock: system.NewClock()}, origin); err != nil {
		return err
	}
	if _, err := Networks(refusedNetworks, s.RefusedNetworks); err != nil {
		return err
	}
	return settings.Require(cmd, "metadata-url", "keyring-file")
}

func (s *Settings) pitr() account.PITR {
	if s.PITR == nil {
		return nil
	}
	days := make(account.PITR, len(s.PITR))
	for plan, n := range s.PITR {
		days[account.Plan(plan)] = n
	}
	return days
}

// NewRegistry makes the registry of a host's metrics.
func NewRegistry() metrics.Registry {
	return metrics.NewRegistry(version.Version(), version.Revision())
}

// Base is what every host of the control plane is made of: store, secrets, agents, use cases, operations listener.
func Base(s Settings, clock *system.Clock) fx.Option {
	return fx.Module("base",
		fx.Supply(s, clock),
		fx.Provide(
			func(s Settings) (*zap.Logger, error) { return NewLog(s.LogLevel) },
			NewRegistry,
			func(lc fx.Lifecycle, s Settings, log *zap.Logger, r metrics.Registry) (trace.Tracer, error) {
				return s.Traces.Open(lc, log, r, s.Kind)
			},
			func(s Settings, log *zap.Logger, r metrics.Registry) (*Journal, error) {
				return NewJournal(log, r, postgres.Config{URL: s.MetadataURL}.Place())
			},
			openStore,
			openRing,
			func(box *secretbox.Box, t trace.Tracer) ports.Fleet {
				return agentclient.New(box, agentclient.Options{UserAgent: version.Product("pgherd"), Tracer: t})
			},
			newOwnHosts,
			newControlPlane,
			newRing,
			fx.Annotate(ringCheck, fx.ResultTags(`group:"checks"`)),
			fx.Annotate(NewOps, fx.ParamTags(``, `group:"checks"`)),
			fx.Annotate(storeCheck, fx.ResultTags(`group:"checks"`)),
		),
		fx.Invoke(func(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, s Settings, o *Ops) {
			Listen(lc, stop, log, Address{"operations", "ops-listen", s.OpsListen}, o)
		}),
		// After the listener: a host that begins takes the place of the one before it at that address, which must have ended. Before
		// whatever encrypts, which then also ends before it.
		fx.Invoke(keepRing),
		fx.Invoke(watchMetadata),
	)
}

func openStore(lc fx.Lifecycle, s Settings, t trace.Tracer) (*postgres.Store, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	store, err := postgres.Open(ctx, postgres.Config{URL: s.MetadataURL, Tracer: t})
	if err != nil {
		return nil, NotUsed(err)
	}
	lc.Append(fx.StopHook(store.Close))
	return store, nil
}

func newControlPlane(
	s Settings, store *postgres.Store, fleet ports.Fleet, clock *system.Clock, box *secretbox.Box, j *Journal, own *guarded.Own,
	tracer trace.Tracer,
) (*controlplane.ControlPlane, error) {
	networks, err := Networks(refusedNetworks, s.RefusedNetworks)
	if err != nil {
		return nil, err
	}
	s.Webhooks.Policy.Refused, s.Webhooks.Policy.Own, s.Webhooks.Policy.OwnKnown = networks, own.Has, own.Known
	sender, err := webhooksender.New(s.Webhooks)
	if err != nil {
		return nil, err
	}
	asking := oidc.Options{
		Policy: s.Webhooks.Policy, ExtraCA: s.Webhooks.ExtraCA, Resolver: s.Webhooks.Resolver, Clock: clock,
	}
	tokens, err := oidc.New(asking)
	if err != nil {
		return nil, err
	}
	origin, err := s.Dashboard.Origin(s.Mail.Dashboard)
	if err != nil {
		return nil, err
	}
	signOn, rules, err := s.SignOn.open(asking, origin)
	if err != nil {
		return nil, err
	}
	mails, pages, err := s.Mail.open()
	if err != nil {
		return nil, err
	}
	verifier, err := s.Dashboard.passkeys(s.Mail.Dashboard)
	if err != nil {
		return nil, err
	}
	var unverified []account.Plan
	for _, name := range s.UnverifiedPlans {
		plan, err := account.ParsePlan(name)
		if err != nil {
			return nil, fmt.Errorf("--unverified-plans: %w", err)
		}
		unverified = append(unverified, plan)
	}
	return controlplane.New(controlplane.Ports{
		Store: store, Admissions: store, Fleet: fleet, Clock: clock, Entropy: system.Entropy{}, Secrets: box, Ring: box,
		Journal: j, Sender: sender, Mailer: mails, Passwords: passwords.Hasher{},
		Passkeys: verifier, SignOn: signOn, Tokens: tokens,
		Snapshots: newSnapshots(s.MetadataURL, box), Tracer: tracer,
	}, controlplane.Config{
		Limits: s.Limits, UnverifiedPlans: unverified, PITR: s.pitr(), LeaseHold: s.LeaseHold,
		RecoveryWindow: s.RecoveryWindow, Retention: s.Retention, DefaultSchedule: database.Schedule(s.DefaultSchedule),
		DefaultPostgres:     s.DefaultPostgres,
		DownloadsPerAccount: s.DownloadsPerAccount, Pages: pages, SignOnRules: rules, Crash: CrashHook(),
	})
}

// storeCheckLimit is below that of all checks, which are then answered in time.
const storeCheckLimit = checkLimit / 2

func storeCheck(store *postgres.Store) Check {
	return Check{Name: "metadata", Run: func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, storeCheckLimit)
		defer cancel()
		return store.Ping(ctx)
	}}
}
