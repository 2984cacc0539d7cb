package single

import (
	"context"
	"fmt"
	"strings"
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
`

// sql asks a cluster as its superuser, by the socket.
func (m *machine) sql(ctx context.Context, port, text string) (string, error) {
	return m.run(ctx, call{as: superuser, args: []string{
		"/usr/lib/postgresql/16/bin/psql", "-X", "-At", "-v", "ON_ERROR_STOP=1", "-h", sockets, "-p", port, "-d", "postgres",
		"-c", text,
	}})
}

func (m *machine) portOf(ctx context.Context, cluster string) (string, error) {
	return m.run(ctx, call{args: []string{"pg_conftool", "--short", "16", cluster, "show", "port"}})
}

func (m *machine) systemctl(ctx context.Context, args ...string) error {
	_, err := m.run(ctx, call{args: append([]string{"systemctl"}, args...)})
	return err
}

// postgresSettings writes the settings of a database server, unless somebody has written others, and restarts PostgreSQL where it
// has not taken them yet. Debian's own PgBouncer is not used.
func (m *machine) postgresSettings(ctx context.Context, _ wanted) error {
	if m.has("/usr/lib/systemd/system/pgbouncer.service") {
		if err := m.systemctl(ctx, "disable", "--now", "pgbouncer"); err != nil {
			return err
		}
	}
	if err := m.settle("main", serverSettings); err != nil {
		return err
	}
	port, err := m.portOf(ctx, "main")
	if err != nil {
		return err
	}
	waiting, err := m.sql(ctx, port, `SELECT count(*) FROM pg_catalog.pg_file_settings
		WHERE NOT applied AND sourcefile LIKE '%/conf.d/pgherd.conf'`)
	if err != nil || waiting == "0" {
		return err
	}
	return m.systemctl(ctx, "restart", "postgresql@16-main")
}

// settle writes the settings of a cluster where it has none of pgherd's.
func (m *machine) settle(cluster, text string) error {
	path := "/etc/postgresql/16/" + cluster + "/conf.d/pgherd.conf"
	if m.has(path) {
		return nil
	}
	who, err := m.user(superuser)
	if err == nil {
		_, err = m.put(path, text, who, 0o644)
	}
	return err
}

// prepareServer runs "pgherd agent init".
func (m *machine) prepareServer(ctx context.Context, s wanted) error {
	port, err := m.portOf(ctx, "main")
	if err != nil {
		return err
	}
	args := []string{
		m.pgherd, "agent", "init", "--peer-user", superuser, "--credentials-file", m.path("/etc/pgherd/agent/credentials.json"),
		"--credentials-owner", agentUser, "--pg-dump", m.path(pgDump), "--pgbouncer", m.path("/usr/sbin/pgbouncer"),
	}
	for _, version := range s.versions {
		args = append(args, "--accept-versions", version)
	}
	for _, language := range s.languages {
		args = append(args, "--accept-languages", language)
	}
	url := fmt.Sprintf("PGHERD_SERVER_URL=postgresql://postgres@/postgres?host=%s&port=%s", sockets, port)
	_, err = m.run(ctx, call{env: []string{url}, args: args})
	return err
}

// metadataDatabase makes a cluster of its own for the metadata, which listens on its socket alone, and in it the database.
func (m *machine) metadataDatabase(ctx context.Context, _ wanted) error {
	if !m.has("/etc/postgresql/16/pgherd/postgresql.conf") {
		create := call{args: []string{"pg_createcluster", "--encoding", "UTF8", "--locale", "C.UTF-8", "16", "pgherd"}}
		if _, err := m.run(ctx, create); err != nil {
			return fmt.Errorf("%w (pg_dropcluster 16 pgherd removes what it has left)", err)
		}
	}
	if err := m.settle("pgherd", "listen_addresses = ''\n"); err != nil {
		return err
	}
	if err := m.systemctl(ctx, "start", "postgresql@16-pgherd"); err != nil {
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
			_, err = m.sql(ctx, port, one.what)
		}
		if err != nil {
			return err
		}
	}
	url := fmt.Sprintf("postgresql://pgherd@/pgherd?host=%s&port=%s\n", sockets, port)
	return m.putNew(metadataURLFile, func() string { return url }, controlUser)
}
