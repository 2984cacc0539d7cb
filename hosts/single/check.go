package single

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/setup"
)

// needed is what must be there, and which package brings it.
var needed = []struct{ path, from string }{
	{"/run/systemd/system", "systemd, as what boots the machine: it starts the units"},
	{"/etc/pgherd/agent.env", "pgherd"},
	{"/usr/lib/postgresql/16/bin/postgres", "postgresql-16"},
	{"/etc/postgresql/16/main/postgresql.conf", "postgresql-16; pg_createcluster 16 main makes one anew"},
	{"/usr/sbin/pgbouncer", "pgbouncer"},
}

// check refuses a machine that cannot be set up so, before anything is changed.
func (m *machine) check(ctx context.Context, s wanted) error {
	for _, n := range needed {
		if !m.has(n.path) {
			return fmt.Errorf("%s is missing, which comes with %s", m.path(n.path), n.from)
		}
	}
	for _, name := range []string{agentUser, controlUser, poolerUser, superuser} {
		if _, err := m.user(name); err != nil {
			return fmt.Errorf("%w: install the packages pgherd and postgresql-16", err)
		}
	}
	if err := m.resolve(ctx, s.host); err != nil {
		return fmt.Errorf("--public-host: %w: customers would not find this machine", err)
	}
	for _, path := range []string{"/usr/lib/postgresql/16/bin/postgres", pgDump, "/usr/sbin/pgbouncer"} {
		v, err := m.version(ctx, m.path(path))
		if err != nil {
			return err
		}
		if err := (floors.Policy{Accept: s.versions}).Judge(v).Admit(); err != nil {
			return err
		}
	}
	return errors.Join(m.sameHost(s), m.noneElse(ctx))
}

// sameHost refuses another name than the one that the machine was set up with: customers' connection strings have that.
func (m *machine) sameHost(s wanted) error {
	text, err := os.ReadFile(m.path(caDir + "/pooler.crt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	block, _ := pem.Decode(text)
	if err != nil || block == nil {
		return fmt.Errorf("%s/pooler.crt holds no certificate: %w", m.path(caDir), err)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("%s/pooler.crt: %w", m.path(caDir), err)
	}
	if err := certificate.VerifyHostname(s.host); err != nil {
		return fmt.Errorf("--public-host: this machine was set up with another name, which customers use: %w", err)
	}
	return nil
}

// noneElse refuses a cluster that somebody else's databases are in: the agent takes rights on them away.
func (m *machine) noneElse(ctx context.Context) error {
	port, err := m.portOf(ctx, "main")
	if err != nil {
		return err
	}
	others, err := m.sql(ctx, port, `SELECT string_agg(datname, ', ') FROM pg_catalog.pg_database WHERE NOT datistemplate
		AND datname <> 'postgres' AND NOT EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = '`+setup.MaintenanceDatabase+`')`)
	if err != nil {
		return fmt.Errorf("is the cluster 16/main running? %w", err)
	}
	if strings.TrimSpace(others) != "" {
		return fmt.Errorf("the cluster 16/main has databases already (%s), and setup is for a new one: see "+
			"docs/operate/production.md", others)
	}
	return nil
}
