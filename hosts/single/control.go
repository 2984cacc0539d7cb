package single

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/hosts/internal/profile"
)

const (
	metadataURLFile = "/etc/pgherd/control/metadata-url"
	keyringFile     = "/etc/pgherd/control/keyring.json"
)

// control runs a command of pgherd's as the control plane, whose files it may make.
func (m *machine) control(ctx context.Context, env []string, args ...string) (string, error) {
	return m.run(ctx, call{
		as: controlUser, args: append([]string{m.pgherd}, args...),
		env: append([]string{
			"PGHERD_METADATA_URL_FILE=" + m.path(metadataURLFile), "PGHERD_KEYRING_FILE=" + m.path(keyringFile),
		}, env...),
	})
}

// metadata makes the key ring and brings the schema up to date.
func (m *machine) metadata(ctx context.Context, _ wanted) error {
	if !m.has(keyringFile) {
		if _, err := m.control(ctx, nil, "admin", "secrets", "init"); err != nil {
			return err
		}
		m.changed("made %s", keyringFile)
	}
	_, err := m.control(ctx, nil, "migrate")
	return err
}

// listed runs a command that lists things, as JSON.
func listed[T any](ctx context.Context, m *machine, args ...string) (list []T, err error) {
	text, err := m.control(ctx, nil, append(append([]string{"admin"}, args...), "--json")...)
	if err != nil {
		return nil, err
	}
	return list, json.Unmarshal([]byte(text), &list)
}

// registerServer tells the control plane of the server, under the name that the agent has for it: metrics of both meet by it.
func (m *machine) registerServer(ctx context.Context, s wanted) error {
	name, nameErr := m.written("agent", "PGHERD_SERVER_NAME")
	address, err := m.agentAddress()
	if err := errors.Join(nameErr, err); err != nil {
		return err
	}
	known, err := listed[struct{ Name, AgentURL string }](ctx, m, "server", "list")
	if err != nil {
		return err
	}
	for _, k := range known {
		if k.Name == name || k.AgentURL == "https://"+address {
			return nil
		}
	}
	text, err := os.ReadFile(m.path(secretFile))
	if err != nil {
		return err
	}
	secrets, err := server.ParseSecrets(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", secretFile, err)
	}
	// The control plane may not enter the agent's folder. It has the secret from its environment, which nobody else reads, and no
	// copy in a file, which could be left.
	_, err = m.control(ctx, []string{"PGHERD_AGENT_SECRET=" + secrets[0]}, "admin", "server", "add", "--name", name,
		"--agent-url", "https://"+address, "--agent-ca-file", m.path(caFile), "--public-host", s.host)
	if err == nil {
		m.changed("registered the server %s", name)
	}
	return err
}

func (m *machine) startControlPlane(ctx context.Context, _ wanted) error {
	if err := m.enable(ctx, "pgherd-api", "pgherd-batch"); err != nil {
		return err
	}
	return errors.Join(m.answered(ctx, "api"), m.answered(ctx, "batch"))
}

const svc = "/usr/bin/svc"

// firstAccount makes the account and, for a caller without a profile of this name, a key of which svc keeps the text. Nobody is
// shown it. A profile that is there stays, whatever has become of its key: whether the API answers is no reason to end a key.
func (m *machine) firstAccount(ctx context.Context, s wanted) error {
	of, err := m.accountOf(ctx, s)
	if err != nil {
		return err
	}
	if !m.has(svc) {
		return m.say("svc is not installed (package pgherd-svc): pgherd admin key create makes a key")
	}
	stored, err := profile.Load()
	if err != nil {
		return err
	}
	known, err := listed[key](ctx, m, "key", "list", "--account", of)
	if err != nil {
		return err
	}
	if have, there := stored.Profiles[s.host]; there {
		if !slices.ContainsFunc(known, func(k key) bool { return strings.HasPrefix(have.Key, k.Prefix) }) {
			return m.say("svc has a profile %s already, which stays, with a key that is none of this account's: after "+
				"\"svc auth logout --profile %[1]s\" the same command makes one", s.host)
		}
		return nil
	}
	url, err := m.apiURL(s)
	if err != nil {
		return err
	}
	text, err := m.keyFor(ctx, of, known)
	if err != nil {
		return err
	}
	err = profile.Update(ctx, func(f *profile.File) {
		f.Profiles[s.host] = profile.Profile{URL: url, Key: text, CAFile: m.path(caFile)}
		f.Current = s.host
	})
	if err == nil {
		m.changed("stored the key in svc's profile %s", s.host)
	}
	return err
}

// accountOf is the account of the owner. It is made where there is none yet; further ones are not made here, where a mistyped
// address would be one.
func (m *machine) accountOf(ctx context.Context, s wanted) (accountID string, err error) {
	email, err := account.ValidateEmail(s.email)
	if err != nil {
		return "", err
	}
	type owned struct{ AccountID, Email string }
	known, err := listed[owned](ctx, m, "account", "list", "--email", email)
	if err != nil {
		return "", err
	}
	for _, k := range known {
		if strings.EqualFold(k.Email, email) {
			return k.AccountID, nil
		}
	}
	others, err := listed[owned](ctx, m, "account", "list", "--limit", "1")
	if err != nil {
		return "", err
	}
	if len(others) > 0 {
		return "", fmt.Errorf("--email: there are accounts, and none of %s; \"pgherd admin account create\" makes further ones", email)
	}
	text, err := m.control(ctx, nil, "admin", "account", "create", "--email", email, "--name", s.name, "--plan", s.plan, "--json")
	if err != nil {
		return "", err
	}
	m.changed("made the account of %s", email)
	var made owned
	err = json.Unmarshal([]byte(text), &made)
	return made.AccountID, err
}

// key is a row of the list of keys; of a new one, the text, too.
type key struct {
	KeyID, Prefix, Label, APIKey string
	RevokedAt, ExpiresAt         *time.Time
}

// works reports whether a key is in force.
func (k key) works() bool {
	return k.RevokedAt == nil && (k.ExpiresAt == nil || time.Now().Before(*k.ExpiresAt))
}

// keyFor is the text of a key of the account for the caller. Each caller of setup has their own, which is called after where
// their svc keeps it. The profile is not there: so one that is called so is one whose text was lost, and gets another one.
func (m *machine) keyFor(ctx context.Context, accountID string, known []key) (string, error) {
	label, err := keyLabel()
	if err != nil {
		return "", err
	}
	args := []string{"key", "create", "--account", accountID, "--label", label, "--scope", "full"}
	for _, k := range known {
		if k.Label == label && k.works() {
			args = []string{"key", "replace", "--key", k.KeyID}
		}
	}
	text, err := m.control(ctx, nil, append(append([]string{"admin"}, args...), "--json")...)
	if err != nil {
		return "", err
	}
	m.changed("made an API key, %q", label)
	var made key
	err = json.Unmarshal([]byte(text), &made)
	return made.APIKey, err
}

// longestPath is how much of a path a label has room for.
const longestPath = 64 - len("pgherd setup, ")

// keyLabel is what the caller's key is called. Of a long path it has the end.
func keyLabel() (string, error) {
	path, err := profile.Path()
	at := []rune(filepath.Dir(path))
	return "pgherd setup, " + string(at[max(0, len(at)-longestPath):]), err
}
