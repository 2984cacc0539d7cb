package grafana

// row is a part of the dashboard, and panel a picture in it.
type row struct {
	title  string
	panels []panel
}

type panel struct {
	title   string
	table   bool
	queries []query
}

func lines(title string, queries ...query) panel { return panel{title: title, queries: queries} }
func table(title string, queries ...query) panel {
	return panel{title: title, table: true, queries: queries}
}

// openRows is how many rows are open from the beginning: what an operator looks at first.
const openRows = 4

// rows are in the order in which an operator looks: what is wrong, whether all is up, what customers notice, and then why.
var rows = []row{
	{"What is up", []panel{
		table("Alerts", query{
			raw: `sum by (alertname, severity, server, instance) (ALERTS{alertname=~"Pgherd.+", alertstate="firing"})`,
		}),
		lines("Agents", gauge("pgherd_server_agent_up", "server"), gauge("pgherd_server_agent_in_charge", "server"),
			gauge("pgherd_server_agent_protocol_agrees", "server")),
		lines("PostgreSQL and PgBouncer", gauge("pgherd_server_postgres_up", "server"), gauge("pgherd_server_pgbouncer_up", "server")),
		lines("Since an agent answered", since("pgherd_server_agent_answered_timestamp_seconds", "server")),
		lines("Hosts of the control plane", gauge("pgherd_metadata_up", "instance"), gauge("pgherd_keyring_confirmed", "instance"),
			gauge("pgherd_own_hosts_known", "instance")),
		lines("What is held, and figures that can be read", gauge("pgherd_brake_on", "instance", "reason"),
			gauge("pgherd_scrape_collector_success", "instance", "collector")),
		lines("Until certificates end", until("pgherd_certificate_not_after_timestamp_seconds", "instance", "of")),
		table("What runs", gauge("pgherd_build_info", "instance", "version", "revision", "goversion")),
	}},
	{"Requests", []panel{
		lines("Requests by status", rate("pgherd_http_requests_total", "status")),
		lines("Time of 99 of 100 requests", quantile("pgherd_http_request_duration_seconds", "method", "status_class")),
		lines("Time by route", quantile("pgherd_http_request_duration_seconds", "route")),
		lines("Bytes of answers", rate("pgherd_http_response_bytes_total")),
		lines("Connections closed", rate("pgherd_http_excess_connections_total", "bound", "closed"),
			rate("pgherd_http_unparsed_total", "code")),
		lines("Downloads broken off", rate("pgherd_http_downloads_broken_off_total", "reason")),
		lines("Pages by status", rate("pgherd_dashboard_requests_total", "status")),
		lines("Time of 99 of 100 pages", quantile("pgherd_dashboard_request_duration_seconds", "page")),
		lines("Open pages", gauge("pgherd_dashboard_streams", "instance")),
	}},
	{"Backups and archives", []panel{
		lines("Daily backups overdue", gauge("pgherd_backups_overdue", "server")),
		lines("Longest overdue, and oldest", gauge("pgherd_backups_longest_overdue_seconds", "server"),
			gauge("pgherd_backups_worst_age_seconds", "server")),
		lines("Backups failed", rate("pgherd_backups_failed_total", "server", "reason")),
		lines("Since drills proved archives", gauge("pgherd_archive_unproven_seconds", "server"),
			gauge("pgherd_drill_duration_seconds", "server")),
		lines("Last drill failed", gauge("pgherd_drill_failed", "server")),
		lines("Since the metadata were kept", since("pgherd_metadata_snapshot_timestamp_seconds")),
		lines("WAL that waits, and room for it", gauge("pgherd_agent_archive_waiting_bytes", "server"),
			gauge("pgherd_agent_archive_wal_free_bytes", "server")),
		lines("Since WAL was stored, and the server copied", since("pgherd_agent_archive_stored_timestamp_seconds", "server"),
			since("pgherd_agent_archive_copied_timestamp_seconds", "server")),
		lines("WAL let go of", rate("pgherd_agent_archive_dropped_segments_total", "server")),
	}},
	{"Work", []panel{
		lines("Open operations", gauge("pgherd_operations", "kind", "state")),
		lines("Longest wait, and oldest", gauge("pgherd_operations_longest_wait_seconds", "kind"),
			gauge("pgherd_operations_oldest_age_seconds", "kind", "state")),
		lines("What happened on servers", rate("pgherd_server_steps_total", "server", "what")),
		lines("Steps", rate("pgherd_steps_total", "what")),
		lines("Time of 99 of 100 rounds", quantile("pgherd_round_duration_seconds", "task")),
		lines("Databases that wait for an operator", gauge("pgherd_databases_in_error", "server"),
			gauge("pgherd_role_changes_stuck", "server"), gauge("pgherd_purges_refused", "server")),
		lines("Moves that keep customers out", gauge("pgherd_moves_longest_shut_seconds", "server", "closed")),
		lines("Servers that send on", gauge("pgherd_forwards", "server"), gauge("pgherd_forwards_untold", "server"),
			gauge("pgherd_agent_forwards", "server"), gauge("pgherd_agent_forwards_failing", "server")),
		lines("Changes of logins", gauge("pgherd_role_changes_pending")),
		lines("Oldest change, and preview that stays", gauge("pgherd_role_changes_oldest_pending_seconds"),
			gauge("pgherd_preview_leases_longest_overdue_seconds")),
		lines("Leases of previews", gauge("pgherd_preview_leases_ending"), gauge("pgherd_preview_leases_overdue")),
	}},
	{"Webhooks and mails", []panel{
		lines("Webhooks that wait", gauge("pgherd_webhooks_events_waiting"), gauge("pgherd_webhooks_due"),
			gauge("pgherd_webhooks_undelivered")),
		lines("For how long", gauge("pgherd_webhooks_oldest_event_seconds"), gauge("pgherd_webhooks_longest_due_seconds"),
			gauge("pgherd_webhooks_oldest_undelivered_seconds")),
		lines("Mails that wait", gauge("pgherd_mails_due"), gauge("pgherd_mails_waiting")),
		lines("For how long", gauge("pgherd_mails_longest_due_seconds"), gauge("pgherd_mails_oldest_waiting_seconds")),
	}},
	{"Servers", []panel{
		lines("Reasons of the health report", gauge("pgherd_agent_health_reason", "server", "code")),
		lines("What the agents say", gauge("pgherd_agent_healthy", "server"), gauge("pgherd_agent_in_charge", "server"),
			gauge("pgherd_agent_postgres_answers", "server"), gauge("pgherd_agent_pgbouncer_answers", "server")),
		lines("Checks", gauge("pgherd_agent_check_ok", "server", "check")),
		lines("Since checks succeeded", since("pgherd_agent_check_last_success_timestamp_seconds", "server", "check")),
		lines("Free on disks, and kept free", gauge("pgherd_agent_disk_free_bytes", "server", "disk"),
			gauge("pgherd_agent_disk_size_bytes", "server", "disk"), gauge("pgherd_agent_disk_reserve_bytes", "server", "disk")),
		lines("Files of disks", gauge("pgherd_agent_disk_files_free", "server", "disk"),
			gauge("pgherd_agent_disk_files_limit", "server", "disk")),
		lines("Room that is held", gauge("pgherd_agent_room_held_bytes", "server", "for")),
		lines("What holds room", gauge("pgherd_agent_room_holders", "server", "for")),
		lines("Jobs", gauge("pgherd_agent_jobs", "server", "state")),
		lines("Connections of PostgreSQL", gauge("pgherd_agent_postgres_connections", "server"),
			gauge("pgherd_agent_postgres_connections_limit", "server")),
		lines("Connections sold", gauge("pgherd_agent_postgres_connections_sold", "server"),
			gauge("pgherd_agent_postgres_connections_sellable", "server")),
		lines("Clients of PgBouncer", gauge("pgherd_agent_pgbouncer_clients", "server"),
			gauge("pgherd_agent_pgbouncer_clients_limit", "server"), gauge("pgherd_agent_pgbouncer_clients_waiting", "server")),
		lines("Longest wait of a client", gauge("pgherd_agent_pgbouncer_longest_wait_seconds", "server")),
		lines("Clients ended", rate("pgherd_agent_pgbouncer_clients_ended_total", "server", "reason")),
		lines("Memory of PgBouncer", gauge("pgherd_agent_pgbouncer_resident_memory_bytes", "server"),
			gauge("pgherd_agent_pgbouncer_memory_limit_bytes", "server")),
		lines("Former users of PgBouncer", gauge("pgherd_agent_pgbouncer_former_users", "server")),
		table("Programs with known holes",
			gauge("pgherd_agent_program_below_floor", "server", "program", "version", "floor", "accepted")),
		table("Languages that customers could use",
			gauge("pgherd_agent_trusted_language", "server", "language", "extension", "database", "accepted")),
	}},
	{"What the databases of a server share", []panel{
		lines("Transaction IDs kept", gauge("pgherd_agent_transaction_ids_kept", "server", "by"),
			gauge("pgherd_agent_transaction_ids_bound", "server")),
		lines("Transaction IDs taken", rate("pgherd_agent_transaction_ids_taken_total", "server")),
		lines("Multixact IDs kept", gauge("pgherd_agent_multixact_ids_kept", "server")),
		lines("Locks", gauge("pgherd_agent_postgres_locks", "server", "kind"),
			gauge("pgherd_agent_postgres_locks_limit", "server", "kind")),
		lines("Queue of notifications", gauge("pgherd_agent_notify_queue_usage_ratio", "server")),
		lines("Shared catalogs", gauge("pgherd_agent_shared_catalogs_bytes", "server")),
		lines("Sessions ended", rate("pgherd_agent_sessions_ended_total", "server", "reason")),
		lines("Databases that cannot be measured", gauge("pgherd_agent_databases_unmeasured", "server")),
	}},
	{"Databases and metadata", []panel{
		lines("Size of all databases", gauge("pgherd_databases_bytes")),
		lines("Over their quotas", gauge("pgherd_databases_full"), gauge("pgherd_databases_closed")),
		lines("Entries of the metadata", gauge("pgherd_metadata_rows", "kind")),
		lines("Size of the metadata", gauge("pgherd_metadata_bytes", "kind")),
		lines("Oldest entries", gauge("pgherd_metadata_oldest_seconds", "kind")),
	}},
	{"Accounts, where --account-metrics is set", []panel{
		lines("Size of databases", gauge("pgherd_account_databases_bytes", "account")),
		lines("Size of backups", gauge("pgherd_account_backups_bytes", "account")),
		lines("Databases and open operations", gauge("pgherd_account_databases", "account"),
			gauge("pgherd_account_operations", "account")),
	}},
	{"Processes", []panel{
		lines("Spans of traces that were lost", rate("pgherd_trace_spans_lost_total", "instance")),
		lines("Processor", query{raw: `sum by (instance) (rate(process_cpu_seconds_total{job="pgherd"}[$__rate_interval]))`}),
		lines("Memory in bytes", query{raw: `sum by (instance) (process_resident_memory_bytes{job="pgherd"})`}),
		lines("Goroutines", query{raw: `sum by (instance) (go_goroutines{job="pgherd"})`}),
		lines("Open files", query{raw: `sum by (instance) (process_open_fds{job="pgherd"})`},
			query{raw: `sum by (instance) (process_max_fds{job="pgherd"})`}),
	}},
}
