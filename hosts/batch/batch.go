// Package batch is the host that carries out queued operations, sends webhooks and mails, and does periodic work. Any number of
// batch hosts can run concurrently.
package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/monitor"
	"github.com/pgherd/pgherd/core/controlplane/webhooks"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/slot"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

// Settings of the batch host.
type Settings struct {
	wiring.Settings
	Workers    work.Workers
	Deliveries int // webhook attempts at a time
	// AccountMetrics is how many accounts have metrics of their own.
	AccountMetrics int
}

// DefaultDeliveries is how many webhook attempts a host makes concurrently.
const DefaultDeliveries = 64

// Command is "pgherd batch".
func Command() *cobra.Command {
	var s Settings
	cmd := &cobra.Command{
		Use:   "batch",
		Short: "work on queued operations, webhooks, mails, scheduled backups and retention",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.Kind = "batch"
			if err := s.Check(cmd); err != nil {
				return err
			}
			if err := errors.Join(checkKept(s.Retention), s.checkShares(), s.checkAccountMetrics()); err != nil {
				return err
			}
			return wiring.Run(cmd.Context(), wiring.Base(s.Settings, system.NewClock()), Module(s), fx.Invoke(onHangup))
		},
	}
	s.Flags(cmd)
	cmd.Flags().IntVar(&s.Workers.All, "workers", 8, "how many operations this host works on at a time")
	cmd.Flags().IntVar(&s.Workers.PerAccount, "workers-per-account", 0,
		"of these, for one account at most; half is the default, and the most")
	cmd.Flags().IntVar(&s.Workers.PerServer, "workers-per-server", 0,
		"of these, on one server at most; half is the default, and the most")
	keepFlags(cmd.Flags(), &s.Retention)
	cmd.Flags().IntVar(&s.AccountMetrics, "account-metrics", 0, fmt.Sprintf(
		"for how many accounts, those with the most bytes, this host has metrics of their own, up to %d; their IDs are labels",
		metrics.MostAccounts))
	cmd.Flags().IntVar(&s.Deliveries, "deliveries", DefaultDeliveries, "how many webhook attempts this host makes at a time")
	return cmd
}

func (s *Settings) checkAccountMetrics() error {
	if s.AccountMetrics < 0 || s.AccountMetrics > metrics.MostAccounts {
		return fmt.Errorf("--account-metrics must be from 0 to %d", metrics.MostAccounts)
	}
	return nil
}

// checkShares refuses settings with which one account, or one server, could hold everything.
func (s *Settings) checkShares() error {
	all, half := s.Workers.All, slot.Half(s.Workers.All)
	return errors.Join(
		slot.CheckShare("--workers-per-account", cmp.Or(s.Workers.PerAccount, half), "--workers", all),
		slot.CheckShare("--workers-per-server", cmp.Or(s.Workers.PerServer, half), "--workers", all),
		// An endpoint that hangs leaves half of its account's share to the account's others.
		slot.CheckShare("what two webhook endpoints get", 2*webhooks.PerEndpoint, "--deliveries", s.Deliveries),
	)
}

func onHangup(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, r *wiring.Ring) {
	wiring.OnHangup(lc, stop, log, r)
}

func seen(w *monitor.Monitor) (list []metrics.Server) {
	for _, s := range w.Servers() {
		list = append(list, metrics.Server{
			ID: s.Server.ID, Name: s.Server.Name, Up: s.Up, AnsweredAt: s.AnsweredAt, Protocol: s.Protocol, State: s.State,
		})
	}
	return list
}

// Module is the batch host's own part: workers, dispatcher and rounds.
func Module(s Settings) fx.Option {
	return fx.Module("batch",
		fx.Provide(wiring.NewNotifier),
		fx.Invoke(func(
			r metrics.Registry, j *wiring.Journal, store *postgres.Store, clock *system.Clock, cp *controlplane.ControlPlane,
		) error {
			j.Begin(cp.Work.Kinds(), cp.Rounds.Tasks())
			return errors.Join(
				metrics.MeasureBrake(r, cp.Brake.On),
				metrics.MeasureSnapshots(r, cp.Snapshots.Newest),
				j.MeasureServers(r, func() []metrics.Server { return seen(cp.Monitor) }),
				metrics.MeasureStored(r, metrics.Measured{
					Store: store, Figures: store.Figures(), Clock: clock, Kinds: cp.Work.Kinds(), UnverifiedPlans: s.UnverifiedPlans,
					Accounts: s.AccountMetrics,
				}),
			)
		}),
		fx.Invoke(func(
			lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, cp *controlplane.ControlPlane, n *postgres.Notifier,
		) {
			wiring.Attach(lc, stop, log, wiring.Part{Name: "workers", Run: func(ctx context.Context) error {
				cp.Work.Run(ctx, n, s.Workers)
				return nil
			}})
			wiring.Attach(lc, stop, log, wiring.Part{Name: "dispatcher", Run: func(ctx context.Context) error {
				cp.Dispatcher.Run(ctx, n.Dispatchers(), s.Deliveries)
				return nil
			}})
			if s.Mail.Configured() {
				wiring.Attach(lc, stop, log, wiring.Part{Name: "mails", Run: func(ctx context.Context) error {
					cp.Mails.Run(ctx, n.Dispatchers())
					return nil
				}})
			} else {
				log.Info("no mail server is configured: this host sends no mails")
			}
			wiring.Attach(lc, stop, log, wiring.Part{Name: "rounds", Run: func(ctx context.Context) error {
				cp.Rounds.Run(ctx)
				return nil
			}})
			wiring.Attach(lc, stop, log, wiring.Part{Name: "watch", Run: func(ctx context.Context) error {
				cp.Monitor.Run(ctx)
				return nil
			}})
		}),
	)
}
