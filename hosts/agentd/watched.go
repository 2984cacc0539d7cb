package agentd

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgherd/pgherd/adapters/metrics"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/health"
	core "github.com/pgherd/pgherd/core/health"
)

// watched are the figures of what the agent looks at in the background. A scrape reads what was found last, so nothing that hangs
// holds it up; what could not be found is left out, and its check says so.
type watched struct {
	inCharge, postgres, healthy     *prometheus.Desc
	reason, ok, succeeded           *prometheus.Desc
	used, limit, sellable, sold     *prometheus.Desc
	waiting, longest                *prometheus.Desc
	diskSize, diskFree, diskReserve *prometheus.Desc
	diskFiles, diskFilesFree        *prometheus.Desc
	held, heldBytes                 *prometheus.Desc
	locks, locksLimit               *prometheus.Desc
	archiveWaits, archiveFree       *prometheus.Desc
	archiveStored, archiveCopied    *prometheus.Desc
	archiveDropped                  *prometheus.Desc
}

func newWatched() watched {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("pgherd_agent_"+name, help, labels, nil)
	}
	return watched{
		inCharge: describe("in_charge", "1 if the agent is in charge of its server and has confirmed that within ten seconds."),
		postgres: describe("postgres_answers", "1 if PostgreSQL answered when the agent last looked, which it does every few seconds."),
		healthy:  describe("healthy", "1 if the agent's health report says healthy."),
		reason:   describe("health_reason", "1 for what the agent's health report gives as a reason, 0 for all others.", "code"),
		ok:       describe("check_ok", "1 if a check of the agent's was well when it last ended, and does not hang.", "check"),
		succeeded: describe("check_last_success_timestamp_seconds",
			"When a check of the agent's was last well; 0 if it never was.", "check"),
		used:  describe("postgres_connections", "Sessions of clients that PostgreSQL has, whoever they are."),
		limit: describe("postgres_connections_limit", "PostgreSQL's max_connections."),
		sellable: describe("postgres_connections_sellable",
			"What max_connections leaves for databases: without what is kept for superusers, the agent and questions of PgBouncer's."),
		sold: describe("postgres_connections_sold",
			"What the databases in service can take of it: the connection cap and 5 of each. More than sellable is oversold."),
		waiting:     describe("pgbouncer_clients_waiting", "Clients that wait for a server connection."),
		longest:     describe("pgbouncer_longest_wait_seconds", "For how long the first of them has."),
		diskSize:    describe("disk_size_bytes", "Size of the file system of a folder, data or backups.", "disk"),
		diskFree:    describe("disk_free_bytes", "What is free there.", "disk"),
		diskReserve: describe("disk_reserve_bytes", "What backups leave free there.", "disk"),
		diskFiles: describe("disk_files_limit",
			"How many files there can be on the file system of a folder; 0 where it does not say.", "disk"),
		diskFilesFree: describe("disk_files_free", "How many more files there can be.", "disk"),
		held: describe("room_holders",
			"What holds room on the server's disks: dumps, copies, uploads, and copies that are ready to become a database.", "for"),
		locks: describe("postgres_locks",
			"Entries in use of PostgreSQL's table of locks, or of predicate locks. Where customers hold too much, at least so many.",
			"kind"),
		locksLimit: describe("postgres_locks_limit",
			"How many things can be locked at a time, by max_locks_per_transaction or max_pred_locks_per_transaction.", "kind"),
		archiveWaits: describe("archive_waiting_bytes", "WAL that waits to be stored in the archive."),
		archiveFree: describe("archive_wal_free_bytes",
			"What is free on the disk where it waits. Where more waits than is free, segments are let go of."),
		archiveStored: describe("archive_stored_timestamp_seconds",
			"When the last segment of WAL ended that is stored: what was committed before is in the archive; 0 if there is none."),
		archiveCopied: describe("archive_copied_timestamp_seconds", "When the newest copy of the server was made; 0 if there is none."),
		archiveDropped: describe("archive_dropped_segments_total",
			"Segments of WAL that were let go of without being stored, as the disk ran full."),
		heldBytes: describe("room_held_bytes", "How much room that is, as promised or, where it is more, as used.", "for"),
	}
}

func (w watched) describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		w.inCharge, w.postgres, w.healthy, w.reason, w.ok, w.succeeded, w.used, w.limit, w.sellable, w.sold, w.waiting, w.longest,
		w.diskSize, w.diskFree, w.diskReserve, w.diskFiles, w.diskFilesFree, w.held, w.heldBytes,
		w.locks, w.locksLimit, w.archiveWaits, w.archiveFree, w.archiveStored, w.archiveCopied, w.archiveDropped,
	} {
		out <- d
	}
}

func (w watched) collect(out chan<- prometheus.Metric, states []health.State, healthy bool, f agent.Figures) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	reasons := make(map[core.Code]bool)
	for _, s := range states {
		gauge(w.ok, metrics.OneOrZero(s.OK), s.Name)
		gauge(w.succeeded, unixOrZero(s.Succeeded), s.Name)
		if s.Reason != nil {
			reasons[s.Reason.Code] = true
		}
		switch s.Name {
		case agent.CheckOfCharge:
			gauge(w.inCharge, metrics.OneOrZero(s.OK))
		case agent.CheckOfPostgres:
			gauge(w.postgres, metrics.OneOrZero(s.OK))
		}
	}
	for _, code := range core.Codes {
		gauge(w.reason, metrics.OneOrZero(reasons[code]), string(code))
	}
	gauge(w.healthy, metrics.OneOrZero(healthy))
	if c := f.Connections; c != nil {
		gauge(w.used, float64(c.InUse))
		gauge(w.limit, float64(c.Max))
		gauge(w.sellable, float64(c.ForDatabases()))
		gauge(w.sold, float64(c.Sold))
	}
	if f.Waits != nil {
		gauge(w.waiting, float64(f.Waits.Clients))
		gauge(w.longest, f.Waits.Longest.Seconds())
	}
	if u := f.Guard.Use; u != nil {
		gauge(w.locks, float64(u.Locks), "locks")
		gauge(w.locks, float64(u.PredicateLocks), "predicate_locks")
		gauge(w.locksLimit, float64(u.Most), "locks")
		gauge(w.locksLimit, float64(u.MostPredicate), "predicate_locks")
	}
	if s := f.Archive; s != nil {
		gauge(w.archiveWaits, float64(s.Waiting))
		gauge(w.archiveFree, float64(s.Free))
		gauge(w.archiveStored, unixOrZero(s.Stored))
		gauge(w.archiveCopied, unixOrZero(s.Copied))
		out <- prometheus.MustNewConstMetric(w.archiveDropped, prometheus.CounterValue, float64(s.Dropped))
	}
	for _, d := range f.Disks {
		gauge(w.diskSize, float64(d.Size), d.Of)
		gauge(w.diskFree, float64(d.Free), d.Of)
		gauge(w.diskReserve, float64(d.Reserve), d.Of)
		gauge(w.diskFiles, float64(d.Files), d.Of)
		gauge(w.diskFilesFree, float64(d.FilesFree), d.Of)
	}
	for _, h := range f.Held {
		gauge(w.held, float64(h.Count), h.For)
		if h.For != diskroom.HeldReady {
			gauge(w.heldBytes, float64(h.Bytes), h.For)
		}
	}
}

func unixOrZero(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
