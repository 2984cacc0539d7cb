package metrics

import (
	"errors"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Counters count what the journal is told.
type Counters struct {
	steps  *prometheus.CounterVec
	rounds *prometheus.HistogramVec

	mu       sync.Mutex
	byServer map[id.ServerID]map[string]float64 // by names of ofServers, and by noBackup with a reason
}

// NewCounters adds the counters of a journal to the metrics of a host. MeasureServers adds those of servers.
func NewCounters(r Registry) (*Counters, error) {
	c := &Counters{
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pgherd_steps_total", Help: "Steps of the work on databases, by what happened and the kind of operation.",
		}, []string{"what", "kind"}),
		rounds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pgherd_round_duration_seconds",
			Help:    "How long the rounds of periodic work take, without what they start on servers.",
			Buckets: []float64{.001, .01, .1, 1, 10, 60},
		}, []string{"task"}),
		byServer: map[id.ServerID]map[string]float64{},
	}
	for what, kind := range alone {
		c.steps.WithLabelValues(what, kind)
	}
	return c, errors.Join(r.Register(c.steps), r.Register(c.rounds))
}

// alone are the steps worth an alert that have one kind each.
var alone = map[string]string{
	"backup.not_read": "", "ci_token.refused": "", "mail.failed": "invitation",
	"lifecycle.not_undone": "lifecycle", "deletion.not_undone": string(deletion.KindDelete),
	"purge.refused": string(deletion.KindPurge),
}

// ofServers are the steps that are counted by server, too: few, as each server has a figure for each.
var ofServers = []string{
	"operation.failed", "backup.damaged", "drill.failed", "metadata.behind", "snapshot.not_kept", "snapshot.unreadable",
}

// ofOperations are the steps that every kind of operation can have.
var ofOperations = []string{
	"operation.claimed", "operation.succeeded", "operation.failed", "operation.canceled", "operation.unconfirmed",
	"operation.lease_lost",
}

// Begin sets the counters of operations and rounds to 0, in a host that does this work: a counter that appears with its first
// failure has not risen, and alerts nobody.
func (c *Counters) Begin(kinds []operation.Spec, tasks []string) {
	for _, what := range ofOperations {
		for _, k := range kinds {
			c.steps.WithLabelValues(what, string(k.Kind))
		}
	}
	for _, task := range tasks {
		c.steps.WithLabelValues("round.done", task)
		c.steps.WithLabelValues("round.failed", task)
		c.rounds.WithLabelValues(task)
	}
}

// Why backups fail.
const (
	notVerified = "not_verified"
	storageFull = "storage_full"
	storageAway = "storage_away"
	otherwise   = "other"
)

var backupReasons = []string{notVerified, storageFull, storageAway, otherwise}

// noBackup begins the name by which backups are counted that have failed for a reason.
const noBackup = "backup.failed "

// Count counts an event.
func (c *Counters) Count(e ports.JournalEvent) {
	c.steps.WithLabelValues(e.What, e.Kind).Inc()
	if e.Took > 0 {
		c.rounds.WithLabelValues(e.Kind).Observe(e.Took.Seconds())
	}
	if slices.Contains(ofServers, e.What) {
		c.add(e.ServerID, e.What)
	}
	if reason := whyNoBackup(e); reason != "" {
		c.add(e.ServerID, noBackup+reason)
	}
}

func (c *Counters) add(server id.ServerID, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byServer[server] == nil {
		c.byServer[server] = map[string]float64{}
	}
	c.byServer[server][what]++
}

func (c *Counters) of(server id.ServerID, what string) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byServer[server][what]
}

// whyNoBackup is the reason of a backup that has failed, also of that which a deletion begins with.
func whyNoBackup(e ports.JournalEvent) string {
	backup, deletes := e.Kind == "backup", e.Kind == string(deletion.KindDelete)
	switch {
	case e.What != "operation."+string(operation.Failed):
		return ""
	case (backup || deletes) && fault.Has(e.Err, fault.BackupNotVerified):
		return notVerified
	case (backup || deletes) && fault.Has(e.Err, fault.BackupStorageFull):
		return storageFull
	case (backup || deletes) && fault.Has(e.Err, fault.BackupStorageUnavailable):
		return storageAway
	case backup:
		return otherwise
	}
	return ""
}
