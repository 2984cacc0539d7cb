package pooler

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
)

// renderMain writes the main file without its mark. The parts come before [pgbouncer], which occurs once and last: at a
// section's start PgBouncer resets all its settings to their defaults, and at an error it stops where it is. In this order an
// error in a part leaves every setting as it was; in the other order it could leave TLS off.
func renderMain(s Settings, databases, users, accounts, hba string) []byte {
	var out bytes.Buffer
	in := func(name string) string { return filepath.Join(s.Dir, name) }
	fmt.Fprintf(&out, "%%include %s\n%%include %s\n\n[pgbouncer]\n", in(databases), in(users))
	for _, line := range settingLines(s, in(accounts), in(hba)) {
		if line.value != "" {
			fmt.Fprintf(&out, "%s = %s\n", line.name, line.value)
		}
	}
	return out.Bytes()
}

type setting struct{ name, value string }

func settingLines(s Settings, accounts, hba string) []setting {
	return append(networkLines(s), []setting{
		// Who may log in: the HBA file says from where, the auth_query of the entry says with which verifier. The auth_query here is
		// for entries without their own, and finds nobody.
		{"auth_type", "hba"},
		{"auth_hba_file", hba},
		{"auth_file", accounts},
		{"auth_user", s.AuthUser},
		{"auth_dbname", s.MaintenanceDatabase},
		{"auth_query", "SELECT NULL::text, NULL::text WHERE $1::text IS NULL"},
		{"admin_users", s.AdminUser},
		{"client_login_timeout", "5"},
		// A log-in to PostgreSQL that fails has PgBouncer refuse others of the login at the entry for so long, if it has no server
		// connection there. Anybody with the password brings that about by asking for replication, which only PostgreSQL refuses.
		{"server_login_retry", "0.2"},

		{"max_client_conn", fmt.Sprint(s.MaxClients)},
		{"max_db_client_connections", fmt.Sprint(s.MaxDatabaseClients)},
		{"default_pool_size", fmt.Sprint(s.UncappedPoolSize)},
		{"query_wait_timeout", "30"},
		// A login's idle server connections of one entry count against its limit, and cannot be used by the other entry. So they are
		// closed well before client_login_timeout ends clients that wait there.
		{"server_idle_timeout", "2"},
		// After RECONNECT, which nobody but the agent says, a client of a session pool is ended too, as soon as it is in no
		// transaction: its session would go on for as long as it likes with what was set for the database before.
		{"server_fast_close", "1"},
		{"max_prepared_statements", "200"},

		// Session state that one client leaves on a server connection never reaches the next.
		{"server_reset_query", "DISCARD ALL"},
		{"server_reset_query_always", oneOrZero(s.ResetAlways)},
		{"ignore_startup_parameters", ignoredParameters},
		{"max_packet_size", fmt.Sprint(s.MaxPacket)},

		{"log_stats", "0"},
		// With it, PgBouncer up to 1.26.1 may log from memory that it has just freed: a stranger can crash it.
		{"log_connections", "0"},
		{"logfile", s.LogFile},
		{"pidfile", s.PIDFile},
		{"syslog", "0"},
	}...)
}

// ignoredParameters is extra_float_digits, which PostgreSQL's JDBC driver sends. It stands twice, with a comma and a blank
// between: PgBouncer searches this list for every name that a stranger gives in the start-up parameter "options", and before
// 1.26.1 the search for an empty name (-c=) never ends in a list of one name, so that nobody is served any more
// (CVE-2026-107349). An empty name is found between the comma and the blank.
const ignoredParameters = "extra_float_digits, extra_float_digits"

// networkLines are how clients reach PgBouncer, and PgBouncer PostgreSQL, which stands on the same machine.
func networkLines(s Settings) []setting {
	return []setting{
		{"listen_addr", strings.Join(s.ListenAddresses, ",")},
		{"listen_port", fmt.Sprint(s.ListenPort)},
		{"unix_socket_dir", s.SocketDir},
		{"unix_socket_mode", socketMode(s)},
		{"client_tls_sslmode", "require"},
		{"client_tls_protocols", "secure"},
		{"client_tls_cert_file", s.TLSCertFile},
		{"client_tls_key_file", s.TLSKeyFile},
		{"server_tls_sslmode", "disable"},
		// PgBouncer never verifies a peer's certificate. If no CA file is named, each RELOAD reads all authorities that the machine
		// trusts, twice, which takes over 10 ms.
		{"client_tls_ca_file", s.TLSCertFile},
		{"server_tls_ca_file", s.TLSCertFile},
	}
}

func socketMode(s Settings) string {
	if s.GroupSocket {
		return "0770"
	}
	return "0700"
}

func oneOrZero(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
