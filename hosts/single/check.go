package single

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/internal/profile"
)

// needed is what must be there, and which package brings it.
var needed = []struct{ path, from string }{
	{"/run/systemd/system", "systemd, as what boots the machine: it starts the units"},
	{"/usr/lib/systemd/system/pgherd-agent.service", "pgherd"},
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
	for _, one := range []func(context.Context, wanted) error{
		m.sameHost, m.notByHand, m.noneElse, m.noOtherPooler, m.startable, m.keepsKeys,
	} {
		if err := one(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// sameHost refuses another name than the one that the machine was set up with: customers' connection strings have that.
func (m *machine) sameHost(_ context.Context, s wanted) error {
	text, err := os.ReadFile(m.path(caDir + "/pooler.crt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("%s/pooler.crt holds no certificate", m.path(caDir))
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

// notByHand refuses a machine that somebody has set up by hand: its agent is another control plane's, or its metadata those of
// other servers.
func (m *machine) notByHand(context.Context, wanted) error {
	if m.has(markFile) {
		return nil
	}
	for _, made := range []string{
		credentialsFile, "/etc/pgherd/agent/tls.crt", secretFile, metadataURLFile, keyringFile,
		"/etc/postgresql/16/pgherd/postgresql.conf",
	} {
		if m.has(made) {
			return fmt.Errorf("%s is there, and setup has not made it (%s is not there): this machine was set up by hand, and goes "+
				"on as docs/operate/production.md says", m.path(made), m.path(markFile))
		}
	}
	return nil
}

// noneElse refuses a cluster that somebody else's databases are in: the agent takes rights on them away.
func (m *machine) noneElse(ctx context.Context, _ wanted) error {
	port, err := m.portOf(ctx, "main")
	if err != nil {
		return err
	}
	there, err := m.databases(ctx, port)
	if err != nil {
		return fmt.Errorf("is the cluster 16/main running? %w", err)
	}
	if m.has(markFile) && slices.Contains(there, setup.MaintenanceDatabase) || len(there) == 0 {
		return nil
	}
	return fmt.Errorf("the cluster 16/main has databases already (%s), and setup is for a new one: see "+
		"docs/operate/production.md", strings.Join(there, ", "))
}

// keepsKeys refuses a caller whose key svc could not keep.
func (m *machine) keepsKeys(context.Context, wanted) error {
	if !m.has(svc) {
		return nil
	}
	if _, err := profile.Path(); err != nil { // where there is none, Load is content
		return err
	}
	_, err := profile.Load()
	return err
}
