package single

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/pgherd/pgherd/hosts/cluster"
)

const (
	caDir      = "/etc/pgherd/ca"
	caFile     = caDir + "/ca.crt"
	secretFile = "/etc/pgherd/agent/secret"
	agentEnv   = "/etc/pgherd/agent.env"
)

// certificates makes the authority, and has it issue a certificate for each part that has none, or one of this authority's that
// is about to end. One that somebody else has issued stays.
func (m *machine) certificates(_ context.Context, s wanted) (err error) {
	if m.ca, err = cluster.OpenCA(m.path(caDir)); err != nil {
		return err
	}
	for _, of := range []struct {
		name        string
		user, group string
		mode        os.FileMode // of the key
		hosts       []string
	}{
		{"agent", agentUser, agentUser, 0o600, []string{"localhost", "127.0.0.1"}},
		{"pooler", "root", poolerUser, 0o640, []string{s.host}},
		{"control", controlUser, controlUser, 0o600, []string{s.host, "localhost", "127.0.0.1"}},
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
	if _, err := m.put(at+"/tls.key", string(key), of, mode); err != nil {
		return err
	}
	_, err = m.put(at+"/tls.crt", string(certificate), of, 0o644)
	return err
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
	port, err := m.portOf(ctx, "main")
	if err != nil {
		return err
	}
	changed, err := m.set(agentEnv, []setting{
		{"PGHERD_LISTEN", agentListen, false},
		{"PGHERD_POSTGRES_PORT", port, true},
		{"PGHERD_ACCEPT_VERSIONS", strings.Join(s.versions, ","), true},
		{"PGHERD_ACCEPT_LANGUAGES", strings.Join(s.languages, ","), true},
	})
	if err != nil {
		return err
	}
	if err := m.systemctl(ctx, "enable", "--now", "pgherd-agent", "pgherd-pooler"); err != nil {
		return err
	}
	if changed {
		if err := m.systemctl(ctx, "restart", "pgherd-agent"); err != nil {
			return err
		}
	}
	return m.answered(ctx, "pgherd-agent", agentReady)
}

// answered waits until the host of a unit is ready.
func (m *machine) answered(ctx context.Context, unit, url string) error {
	if err := m.answers(ctx, url); err != nil {
		return fmt.Errorf("%s: %w; journalctl --unit %s says why", unit, err, unit)
	}
	return nil
}

// setting is a line of a file of settings; always says that it takes the place of one that is there.
type setting struct {
	name, value string
	always      bool
}

// set adds the settings that have a value to a file of settings.
func (m *machine) set(absolute string, list []setting) (changed bool, err error) {
	text, err := os.ReadFile(m.path(absolute))
	if err != nil {
		return false, err
	}
	lines := string(text)
	for _, s := range list {
		line := s.name + "=" + s.value
		if strings.ContainsAny(s.value, " ()") {
			line = s.name + `="` + s.value + `"`
		}
		there := regexp.MustCompile(`(?m)^` + s.name + `=.*$`)
		switch {
		case s.value == "":
		case !there.MatchString(lines):
			lines = strings.TrimRight(lines, "\n") + "\n" + line + "\n"
		case s.always:
			lines = there.ReplaceAllLiteralString(lines, line)
		}
	}
	who, err := m.user("root")
	if err != nil {
		return false, err
	}
	return m.put(absolute, lines, who, 0o640)
}
