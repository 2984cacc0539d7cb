package single

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"

	"github.com/pgherd/pgherd/core/account"
)

const (
	metadataURLFile = "/etc/pgherd/control/metadata-url"
	keyringFile     = "/etc/pgherd/control/keyring.json"
	// serverName is what the operator's commands call the machine's PostgreSQL.
	serverName = "db1"
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

// registerServer tells the control plane of the server.
func (m *machine) registerServer(ctx context.Context, s wanted) error {
	known, err := listed[struct{ Name string }](ctx, m, "server", "list")
	if err != nil {
		return err
	}
	for _, k := range known {
		if k.Name == serverName {
			return nil
		}
	}
	secret, err := os.ReadFile(m.path(secretFile))
	if err != nil {
		return err
	}
	// The control plane may not enter the agent's folder.
	const copied = "/etc/pgherd/control/" + serverName + ".secret"
	defer func() { _ = os.Remove(m.path(copied)) }()
	if err := m.putNew(copied, func() string { return string(secret) }, controlUser); err != nil {
		return err
	}
	_, err = m.control(ctx, []string{"PGHERD_AGENT_SECRET_FILE=" + m.path(copied)}, "admin", "server", "add", "--name", serverName,
		"--agent-url", agentURL, "--agent-ca-file", m.path(caFile), "--public-host", s.host)
	return err
}

func (m *machine) startControlPlane(ctx context.Context, _ wanted) error {
	if err := m.systemctl(ctx, "enable", "--now", "pgherd-api", "pgherd-batch"); err != nil {
		return err
	}
	return errors.Join(m.answered(ctx, "pgherd-api", apiReady), m.answered(ctx, "pgherd-batch", batchReady))
}

// firstAccount makes the account, and a key of which svc keeps the text for the caller. Nobody is shown it.
func (m *machine) firstAccount(ctx context.Context, s wanted) error {
	of, err := m.accountOf(ctx, s)
	if err != nil {
		return err
	}
	if !m.has("/usr/bin/svc") {
		_, err := m.out.Write([]byte("setup: svc is not installed (package pgherd-svc): pgherd admin key create makes a key\n"))
		return err
	}
	profile := []string{"HOME=" + os.Getenv("HOME"), "XDG_CONFIG_HOME=" + os.Getenv("XDG_CONFIG_HOME"), "SVC_PROFILE=" + s.host}
	if _, err := m.run(ctx, call{env: profile, args: []string{"svc", "databases", "list"}}); err == nil {
		return nil
	}
	key, err := m.keyOf(ctx, of)
	if err != nil {
		return err
	}
	_, err = m.run(ctx, call{env: profile, input: key, args: []string{
		"svc", "auth", "login", "--url", "https://" + s.host + ":" + apiPort, "--ca-file", m.path(caFile), "--api-key", "-",
	}})
	return err
}

// accountOf is the account of the owner, who is made where nobody has that address.
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
	text, err := m.control(ctx, nil, "admin", "account", "create", "--email", email, "--name", s.name, "--plan", s.plan, "--json")
	if err != nil {
		return "", err
	}
	var made owned
	err = json.Unmarshal([]byte(text), &made)
	return made.AccountID, err
}

// keyLabel is what the key of an account is called that setup makes.
const keyLabel = "pgherd setup"

// keyOf is the text of a key of the account. One that an earlier run has made, and whose text is not known, gets a new text.
func (m *machine) keyOf(ctx context.Context, accountID string) (string, error) {
	type key struct {
		KeyID, Label, APIKey string
		RevokedAt            *string
	}
	known, err := listed[key](ctx, m, "key", "list", "--account", accountID)
	if err != nil {
		return "", err
	}
	args := []string{"key", "create", "--account", accountID, "--label", keyLabel, "--scope", "full"}
	for _, k := range known {
		if k.Label == keyLabel && k.RevokedAt == nil {
			args = []string{"key", "replace", "--key", k.KeyID}
		}
	}
	text, err := m.control(ctx, nil, append(append([]string{"admin"}, args...), "--json")...)
	if err != nil {
		return "", err
	}
	var made key
	err = json.Unmarshal([]byte(text), &made)
	return made.APIKey, err
}
