package single

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/hosts/cluster"
)

const (
	caDir      = "/etc/pgherd/ca"
	caFile     = caDir + "/ca.crt"
	secretFile = "/etc/pgherd/agent/secret"
	// credentialsFile is what "pgherd agent init" writes.
	credentialsFile = "/etc/pgherd/agent/credentials.json"
)

// markFile says that setup has made what there is on the machine, and may go on with it. It is there before anything else.
const (
	markFile = caDir + "/made-by-setup"
	mark     = "pgherd setup has set this machine up, and can be run again.\n"
)

// authority makes the authority of the machine's certificates, or opens it.
func (m *machine) authority(context.Context, wanted) error {
	if err := os.MkdirAll(m.path(caDir), 0o755); err != nil {
		return err
	}
	if err := m.putNew(markFile, func() string { return mark }, "root"); err != nil {
		return err
	}
	made := !m.has(caFile)
	ca, err := cluster.OpenCA(m.path(caDir))
	if err == nil && made {
		m.changed("wrote %s", caFile)
	}
	m.ca = ca
	return err
}

// certificates has the authority issue a certificate for each part that has none, or has one of this authority's that is about to
// end. One that somebody else has issued stays.
func (m *machine) certificates(_ context.Context, s wanted) error {
	agentAt, err := m.agentAddress()
	if err != nil {
		return err
	}
	for _, of := range []struct {
		name        string
		user, group string
		mode        os.FileMode // of the key
		hosts       []string
	}{
		{"agent", agentUser, agentUser, 0o600, withHost(ownNames, agentAt)},
		{"pooler", "root", poolerUser, 0o640, []string{s.host}},
		{"control", controlUser, controlUser, 0o600, append([]string{s.host}, ownNames...)},
	} {
		who, userErr := m.user(of.user)
		group, groupErr := m.user(of.group)
		if err := errors.Join(userErr, groupErr); err != nil {
			return err
		}
		who.gid = group.gid
		if err := m.certify(of.name, who, of.mode, of.hosts); err != nil {
			return fmt.Errorf("of %s: %w", of.name, err)
		}
	}
	return nil
}

// ownNames are those by which a machine reaches itself.
var ownNames = []string{"localhost", "127.0.0.1"}

// withHost adds the host of an address to names, unless it is among them.
func withHost(names []string, address string) []string {
	host, _, err := net.SplitHostPort(address)
	if err != nil || slices.Contains(names, host) {
		return names
	}
	return append(slices.Clone(names), host)
}

func (m *machine) certify(name string, of owner, mode os.FileMode, hosts []string) error {
	at := "/etc/pgherd/" + name
	if own, err := os.ReadFile(m.path(at + "/tls.crt")); err == nil && !m.ca.Issued(own) {
		return nil
	}
	files, err := m.ca.IssueOwn(name, hosts...)
	if err != nil {
		return err
	}
	key, keyErr := os.ReadFile(files.KeyFile)
	certificate, err := os.ReadFile(files.CertFile)
	if err := errors.Join(keyErr, err); err != nil {
		return err
	}
	// The hosts read both again where they do not belong together.
	if err := m.put(at+"/tls.key", string(key), of, mode); err != nil {
		return err
	}
	return m.put(at+"/tls.crt", string(certificate), of, 0o644)
}

// startAgent makes the secret that the control plane shows to the agent, and starts agent and PgBouncer.
func (m *machine) startAgent(ctx context.Context, s wanted) error {
	err := m.putNew(secretFile, func() string {
		secret := make([]byte, 32)
		_, _ = rand.Read(secret) // it never fails
		return hex.EncodeToString(secret) + "\n"
	}, agentUser)
	if err != nil {
		return err
	}
	if err := m.agentSettings(ctx, s); err != nil {
		return err
	}
	if err := m.enable(ctx, "pgherd-agent", "pgherd-pooler"); err != nil {
		return err
	}
	return m.answered(ctx, "agent")
}

// agentSettings writes what the agent has to be told. It is stopped before that changes: so one that runs has read all of it,
// also where this is cut off in between.
func (m *machine) agentSettings(ctx context.Context, s wanted) error {
	port, err := m.portOf(ctx, "main")
	if err != nil {
		return err
	}
	have, err := m.readEnv("agent")
	if err != nil {
		return err
	}
	text := with(have, []setting{
		{"PGHERD_LISTEN", agentListen, false},
		{"PGHERD_SERVER_NAME", firstServer, false},
		{"PGHERD_POSTGRES_PORT", port, true},
		{"PGHERD_ACCEPT_VERSIONS", strings.Join(s.versions, ","), true},
		{"PGHERD_ACCEPT_LANGUAGES", strings.Join(s.languages, ","), true},
	})
	if text == have {
		return nil
	}
	who, err := m.user("root")
	if err != nil {
		return err
	}
	if err := m.stop(ctx, "pgherd-agent"); err != nil {
		return err
	}
	return m.put(envFile("agent"), text, who, 0o640)
}

// answered waits until a host is ready.
func (m *machine) answered(ctx context.Context, host string) error {
	url, err := m.readyURL(host)
	if err == nil {
		err = m.answers(ctx, url)
	}
	if err != nil {
		return fmt.Errorf("pgherd-%s: %s: %w; journalctl --unit pgherd-%[1]s says why", host, url, err)
	}
	return nil
}
