package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Measured says what the metadata database is measured for.
type Measured struct {
	Store   ports.Store
	Figures ports.Figures
	Clock   ports.Clock
	// Kinds are the kinds of operations: each has figures, also where there is no operation of it.
	Kinds []operation.Spec
	// UnverifiedPlans are the plans whose backups are not verified.
	UnverifiedPlans []string
	// Accounts is how many accounts have figures of their own.
	Accounts int
}

// MeasureStored adds what the metadata database knows to the metrics of a host. All labels are bounded: servers, kinds, states,
// and so many accounts.
func MeasureStored(r Registry, m Measured) error {
	families := []*family{
		m.operations(), m.changes(), m.purges(), m.previews(), m.overdue(), m.ages(), m.drills(), m.databases(), m.sizes(),
		m.webhooks(), m.mails(), m.kept(), m.moves(),
	}
	if m.Accounts > 0 {
		families = append(families, m.accounts())
	}
	return r.Register(newStored(m.Clock.Now, families...))
}

// view reads by the ports.
func (m Measured) view(ctx context.Context, read func(ctx context.Context, tx ports.Tx) error) error {
	return m.Store.View(ctx, read)
}

// operationStates are those of an operation that is open.
var operationStates = []operation.Status{operation.Queued, operation.Running}

func (m Measured) operations() *family {
	count := describe("pgherd_operations", "Open operations, by kind and state (queued, running).", "kind", "state")
	oldest := describe("pgherd_operations_oldest_age_seconds",
		"Time since the creation of the oldest open operation of a kind and state; 0 where there is none.", "kind", "state")
	waiting := describe("pgherd_operations_longest_wait_seconds",
		"For how long the operation of a kind that waits longest could have been worked on, and no worker took it.", "kind")
	return &family{
		name: "operations", all: []*prometheus.Desc{count, oldest, waiting},
		read: func(ctx context.Context, now time.Time, set setter) error {
			list, err := m.Figures.OpenOperations(ctx)
			if err != nil {
				return err
			}
			of := map[[2]string]ports.OperationTally{}
			for _, o := range list {
				of[[2]string{o.Kind, o.Status}] = o
			}
			for _, kind := range m.Kinds {
				longest := 0.0
				for _, state := range operationStates {
					o := of[[2]string{string(kind.Kind), string(state)}]
					set.tally(count, oldest, o.Tally, now, string(kind.Kind), string(state))
					longest = max(longest, since(now, o.Due))
				}
				set(waiting, longest, string(kind.Kind))
			}
			return nil
		},
	}
}

func (m Measured) changes() *family {
	pending := describe("pgherd_role_changes_pending", "Unfinished changes of logins: each blocks work on its database.")
	oldest := describe("pgherd_role_changes_oldest_pending_seconds",
		"Age of the oldest unfinished change of a login; 0 when there is none.")
	stuck := describe("pgherd_role_changes_stuck",
		"Pending changes of logins that a server refuses for good: each blocks its database until an operator acts.", "server")
	return &family{
		name: "role_changes", all: []*prometheus.Desc{pending, oldest, stuck},
		read: func(ctx context.Context, now time.Time, set setter) error {
			some, err := m.Figures.PendingChanges(ctx)
			if err != nil {
				return err
			}
			set.tally(pending, oldest, some, now)
			return m.view(ctx, func(ctx context.Context, tx ports.Tx) error {
				list, err := tx.RoleChanges().Stuck(ctx)
				for _, s := range list {
					set(stuck, float64(s.Count), s.Server)
				}
				return err
			})
		},
	}
}

func (m Measured) purges() *family {
	refused := describe("pgherd_purges_refused",
		"Deleted databases that a server refuses to purge: each keeps its bytes until an operator acts.", "server")
	return &family{
		name: "purges", all: []*prometheus.Desc{refused},
		read: func(ctx context.Context, _ time.Time, set setter) error {
			return m.view(ctx, func(ctx context.Context, tx ports.Tx) error {
				list, err := tx.Operations().Refused(ctx, deletion.KindPurge)
				for _, s := range list {
					set(refused, float64(s.Count), s.Server)
				}
				return err
			})
		},
	}
}

// leaseEndsSoon is what counts as about to end.
const leaseEndsSoon = time.Hour

func (m Measured) previews() *family {
	ending := describe("pgherd_preview_leases_ending", "Leases of previews that end within an hour.")
	overdue := describe("pgherd_preview_leases_overdue", "Previews whose leases have ended, and whose deletion has not begun.")
	oldest := describe("pgherd_preview_leases_longest_overdue_seconds",
		"Time since the end of the lease of the preview that waits longest for its deletion; 0 when none does.")
	return &family{
		name: "previews", all: []*prometheus.Desc{ending, overdue, oldest},
		read: func(ctx context.Context, now time.Time, set setter) error {
			l, err := m.Figures.PreviewLeases(ctx, now, now.Add(leaseEndsSoon))
			set(ending, float64(l.Ending))
			set(overdue, float64(l.Overdue))
			set(oldest, since(now, l.Oldest))
			return err
		},
	}
}

// backupLate is when a daily backup that was not begun is overdue: the batch host looks every two seconds.
const backupLate = time.Hour

func (m Measured) overdue() *family {
	count := describe("pgherd_backups_overdue",
		"Databases of a server whose daily backup should have begun more than an hour ago.", "server")
	longest := describe("pgherd_backups_longest_overdue_seconds",
		"For how long the daily backup should have begun of the database of a server that waits longest; 0 when none waits.", "server")
	return &family{
		name: "backup_schedules", all: []*prometheus.Desc{count, longest},
		read: func(ctx context.Context, now time.Time, set setter) error {
			list, err := m.Figures.OverdueBackups(ctx, now, now.Add(-backupLate))
			for _, s := range list {
				set.tally(count, longest, s.Tally, now, s.Server)
			}
			return err
		},
	}
}

// allKept is longer than for other figures: these look at every database.
const allKept = 10 * time.Minute

func (m Measured) ages() *family {
	age := describe("pgherd_backups_worst_age_seconds",
		"Age of the last verified backup of the database with daily backups that is worst off, by server. Where none was verified "+
			"since these were switched on, the time since then; where the plan has none verified, any backup counts.", "server")
	return &family{
		name: "backup_ages", kept: allKept, all: []*prometheus.Desc{age},
		read: func(ctx context.Context, now time.Time, set setter) error {
			list, err := m.Figures.BackupAges(ctx, m.UnverifiedPlans)
			for _, s := range list {
				set(age, since(now, s.Oldest), s.Server)
			}
			return err
		},
	}
}

func (m Measured) drills() *family {
	unproven := describe("pgherd_archive_unproven_seconds",
		"For how long no drill has proven the archive of a server: since the end of the last one that did, or since there was "+
			"something to prove; 0 where there is nothing.", "server")
	failed := describe("pgherd_drill_failed", "1 if the last drill of a server that could tell has failed.", "server")
	took := describe("pgherd_drill_duration_seconds",
		"How long the last drill of a server that could tell has worked; 0 where none could.", "server")
	return &family{
		name: "drills", all: []*prometheus.Desc{unproven, failed, took},
		read: func(ctx context.Context, now time.Time, set setter) error {
			list, err := m.Figures.Drills(ctx)
			for _, s := range list {
				set(unproven, since(now, s.UnprovenSince), s.Server)
				set(failed, OneOrZero(s.Outcome == drill.Failed), s.Server)
				set(took, float64(s.TookMs)/1000, s.Server)
			}
			return err
		},
	}
}

func (m Measured) databases() *family {
	full := describe("pgherd_databases_full", "Databases that are read-only by default, for the quota of their bytes.")
	closed := describe("pgherd_databases_closed",
		"Databases far above the quota of their bytes: nobody can connect until an operator acts.")
	failing := describe("pgherd_databases_in_error",
		"Databases of a server in status error: their creation, or an action that was not undone, was refused.", "server")
	return &family{
		name: "databases", all: []*prometheus.Desc{full, closed, failing},
		read: func(ctx context.Context, _ time.Time, set setter) error {
			list, err := m.Figures.DatabasesInError(ctx)
			if err != nil {
				return err
			}
			for _, s := range list {
				set(failing, float64(s.Count), s.Server)
			}
			over, err := m.Figures.OverQuota(ctx)
			set(full, float64(over.Full))
			set(closed, float64(over.Closed))
			return err
		},
	}
}

func (m Measured) sizes() *family {
	bytes := describe("pgherd_databases_bytes", "Size of all databases together, as last measured.")
	return &family{
		name: "database_sizes", kept: allKept, all: []*prometheus.Desc{bytes},
		read: func(ctx context.Context, _ time.Time, set setter) error {
			sum, err := m.Figures.DatabaseBytes(ctx)
			set(bytes, float64(sum))
			return err
		},
	}
}

func (m Measured) webhooks() *family {
	undelivered := describe("pgherd_webhooks_undelivered",
		"Events and deliveries that wait to be delivered, also for their next attempt.")
	oldest := describe("pgherd_webhooks_oldest_undelivered_seconds",
		"Age of the oldest event or delivery that waits; 0 when nothing does. A receiver that fails makes it grow.")
	due := describe("pgherd_webhooks_due", "Deliveries whose next attempt could have begun.")
	longest := describe("pgherd_webhooks_longest_due_seconds",
		"For how long the attempt that waits longest could have begun; 0 when none waits.")
	events := describe("pgherd_webhooks_events_waiting", "Events of which no deliveries were made yet.")
	eldest := describe("pgherd_webhooks_oldest_event_seconds", "Age of the oldest of these events; 0 when there is none.")
	return &family{
		name: "webhooks", all: []*prometheus.Desc{undelivered, oldest, due, longest, events, eldest},
		read: func(ctx context.Context, now time.Time, set setter) error {
			waiting, err := m.Figures.WaitingEvents(ctx)
			if err != nil {
				return err
			}
			set.tally(events, eldest, waiting, now)
			ready, err := m.Figures.DueDeliveries(ctx, now)
			if err != nil {
				return err
			}
			set.tally(due, longest, ready, now)
			return m.view(ctx, func(ctx context.Context, tx ports.Tx) error {
				all, err := tx.Deliveries().Backlog(ctx)
				set.tally(undelivered, oldest, all, now)
				return err
			})
		},
	}
}

func (m Measured) mails() *family {
	waiting := describe("pgherd_mails_waiting", "Mails that wait to be sent, also for their next attempt.")
	oldest := describe("pgherd_mails_oldest_waiting_seconds", "Age of the oldest mail that waits; 0 when none does.")
	due := describe("pgherd_mails_due", "Mails whose next attempt could have begun.")
	longest := describe("pgherd_mails_longest_due_seconds",
		"For how long the attempt that waits longest could have begun; 0 when none waits.")
	return &family{
		name: "mails", all: []*prometheus.Desc{waiting, oldest, due, longest},
		read: func(ctx context.Context, now time.Time, set setter) error {
			ready, err := m.Figures.DueMails(ctx, now)
			if err != nil {
				return err
			}
			set.tally(due, longest, ready, now)
			return m.view(ctx, func(ctx context.Context, tx ports.Tx) error {
				all, err := tx.Mails().Backlog(ctx)
				set.tally(waiting, oldest, all, now)
				return err
			})
		},
	}
}

// kept is what is deleted when it has been over for long enough, by kind.
func (m Measured) kept() *family {
	rows := describe("pgherd_metadata_rows", "Entries of a kind in the metadata, as PostgreSQL last estimated.", "kind")
	size := describe("pgherd_metadata_bytes", "What the entries of a kind take in the metadata database, with indexes.", "kind")
	oldest := describe("pgherd_metadata_oldest_seconds",
		"For how long the oldest entry of a kind has been over; 0 where none is.", "kind")
	return &family{
		name: "kept", all: []*prometheus.Desc{rows, size, oldest},
		read: func(ctx context.Context, now time.Time, set setter) error {
			return m.view(ctx, func(ctx context.Context, tx ports.Tx) error {
				list, err := tx.Retention().Stored(ctx)
				for _, s := range list {
					set(rows, float64(s.Rows), string(s.Kind))
					set(size, float64(s.Bytes), string(s.Kind))
					set(oldest, since(now, s.Oldest), string(s.Kind))
				}
				return err
			})
		},
	}
}
