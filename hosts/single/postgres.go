package single

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/agent/setup"
)

// The system users.
const (
	agentUser   = "pgherd-agent"
	controlUser = "pgherd"
	poolerUser  = "pgbouncer"
	superuser   = "postgres"
)

const (
	pgDump  = "/usr/lib/postgresql/16/bin/pg_dump"
	sockets = "/var/run/postgresql"
)

// serverSettings are those of docs/operate/production.md.
const serverSettings = `listen_addresses = 'localhost'
max_connections = 670
max_locks_per_transaction = 300
password_encryption = 'scram-sha-256'
reserved_connections = 10
shared_preload_libraries = 'pg_stat_statements'
wal_level = logical
`

// sql asks a cluster as its superuser, by the socket.
func (m *machine) sql(ctx context.Context, port, text string) (string, error) {
	return m.run(ctx, call{as: superuser, args: []string{
		"/usr/lib/postgresql/16/bin/psql", "-qXAt", "-v", "ON_ERROR_STOP=1", "-h", sockets, "-p", port, "-d", "postgres",
		"-c", text,
	}})
}

func (m *machine) portOf(ctx context.Context, cluster string) (string, error) {
	return m.run(ctx, call{args: []string{"pg_conftool", "--short", "16", cluster, "show", "port"}})
}

// databases are those of a cluster besides PostgreSQL's own.
func (m *machine) databases(ctx context.Context, port string) ([]string, error) {
	text, err := m.sql(ctx, port, "SELECT datname FROM pg_catalog.pg_database WHERE NOT datistemplate AND datname <> 'postgres'")
	return strings.FieldsFunc(text, func(c rune) bool { return c == '\n' }), err
}

// startable refuses settings with which PostgreSQL would not start again. A server that runs goes on with those from before, and
// says of what waits for a restart the same as of what is wrong: so the program itself reads them anew.
func (m *machine) startable(ctx context.Context, _ wanted) error {
	_, err := m.run(ctx, call{as: superuser, args: readsSettings(
		"/usr/lib/postgresql/16/bin/postgres", m.path("/etc/postgresql/16/main/postgresql.conf"))})
	if err != nil {
		return fmt.Errorf("PostgreSQL would not start again with the settings of the cluster 16/main: %w", err)
	}
	return nil
}

// readsSettings has a program of PostgreSQL's read settings, and nothing else: it names files, lines and settings that are wrong.
func readsSettings(program, file string) []string {
	return []string{program, "-C", "max_connections", "-c", "log_destination=stderr", "-c", "config_file=" + file}
}

// waiting asks for the settings that wait for a restart. A session learns what the files say by reading them itself.
const waiting = `DO 'BEGIN PERFORM count(*) FROM pg_catalog.pg_file_settings; END';
SELECT name FROM pg_catalog.pg_settings WHERE pending_restart`

// postgresSettings writes the settings of a database server, unless somebody has written others, and restarts PostgreSQL where it
// has not taken them yet. Where customers have databases, that is for the operator to do. Debian's own PgBouncer is not used.
func (m *machine) postgresSettings(ctx context.Context, s wanted) error {
	if err := m.stopDebiansPooler(ctx); err != nil {
		return err
	}
	if err := m.settle("main", serverSettings); err != nil {
		return err
	}
	port, err := m.portOf(ctx, "main")
	if err != nil {
		return err
	}
	names, err := m.sql(ctx, port, waiting)
	if err != nil || names == "" {
		return err
	}
	there, err := m.databases(ctx, port)
	if err != nil {
		return err
	}
	const restart = "postgresql@16-main"
	if slices.ContainsFunc(there, func(name string) bool { return name != setup.MaintenanceDatabase }) {
		return m.say("PostgreSQL takes %s when it is restarted, which ends customers' connections: do it when that suits them, with "+
			"\"systemctl restart %s\"", strings.Join(strings.Fields(names), ", "), restart)
	}
	if err := m.startable(ctx, s); err != nil {
		return err
	}
	if err := m.systemctl(ctx, "restart", restart); err != nil {
		return err
	}
	m.changed("restarted PostgreSQL")
	return nil
}

// settle writes the settings of a cluster where it has none of pgherd's.
func (m *machine) settle(cluster, text string) error {
	path := "/etc/postgresql/16/" + cluster + "/conf.d/pgherd.conf"
	if m.has(path) {
		return nil
	}
	who, err := m.user(superuser)
	if err != nil {
		return err
	}
	return m.put(path, text, who, 0o644)
}

// prepareServer runs "pgherd agent init".
func (m *machine) prepareServer(ctx context.Context, s wanted) error {
	port, err := m.portOf(ctx, "main")
	if err != nil {
		return err
	}
	args := []string{
		m.pgherd, "agent", "init", "--peer-user", superuser, "--credentials-file", m.path(credentialsFile),
		"--credentials-owner", agentUser, "--pg-dump", m.path(pgDump), "--pgbouncer", m.path("/usr/sbin/pgbouncer"),
	}
	for _, version := range s.versions {
		args = append(args, "--accept-versions", version)
	}
	for _, language := range s.languages {
		args = append(args, "--accept-languages", language)
	}
	url := fmt.Sprintf("PGHERD_SERVER_URL=postgresql://postgres@/postgres?host=%s&port=%s", sockets, port)
	prepared := m.has(credentialsFile)
	_, err = m.run(ctx, call{env: []string{url}, args: args})
	if err == nil && !prepared {
		m.changed("wrote %s", credentialsFile)
	}
	return err
}

// halfMade is what to do about a cluster that is not whole, while there is nothing in it.
const halfMade = "where its creation was cut off, pg_dropcluster --stop 16 pgherd removes what that has left"

// metadataDatabase makes a cluster of its own for the metadata, which listens on its socket alone, and in it the database.
func (m *machine) metadataDatabase(ctx context.Context, _ wanted) error {
	if !m.has("/etc/postgresql/16/pgherd/postgresql.conf") {
		create := call{args: []string{"pg_createcluster", "--encoding", "UTF8", "--locale", "C.UTF-8", "16", "pgherd"}}
		if _, err := m.run(ctx, create); err != nil {
			return fmt.Errorf("%w (%s)", err, halfMade)
		}
		m.changed("made the cluster 16/pgherd")
	}
	if err := m.settle("pgherd", "listen_addresses = ''\n"); err != nil {
		return err
	}
	if err := m.start(ctx, "postgresql@16-pgherd"); err != nil {
		if !m.has(metadataURLFile) {
			err = fmt.Errorf("%w (%s)", err, halfMade)
		}
		return err
	}
	port, err := m.portOf(ctx, "pgherd")
	if err != nil {
		return err
	}
	for _, one := range []struct{ unless, what string }{
		{"SELECT count(*) FROM pg_catalog.pg_roles WHERE rolname = 'pgherd'", "CREATE ROLE pgherd LOGIN"},
		{"SELECT count(*) FROM pg_catalog.pg_database WHERE datname = 'pgherd'", "CREATE DATABASE pgherd OWNER pgherd"},
	} {
		found, err := m.sql(ctx, port, one.unless)
		if err == nil && strings.TrimSpace(found) == "0" {
			if _, err = m.sql(ctx, port, one.what); err == nil {
				m.changed("%s", one.what)
			}
		}
		if err != nil {
			return err
		}
	}
	url := fmt.Sprintf("postgresql://pgherd@/pgherd?host=%s&port=%s\n", sockets, port)
	return m.putNew(metadataURLFile, func() string { return url }, controlUser)
}
