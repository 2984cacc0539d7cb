package setup

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pgherd/pgherd/core/credential"
)

// Credentials are the passwords of the platform's own accounts on one server. They are stored only in one file, which only the
// agent's system user can read.
type Credentials struct {
	AgentPassword       string `json:"agentPassword"`       // of AgentLogin in PostgreSQL
	PoolerPassword      string `json:"poolerPassword"`      // of PoolerLogin, as which PgBouncer asks for verifiers
	PoolerAdminPassword string `json:"poolerAdminPassword"` // of PgBouncer's admin console
}

func (c Credentials) complete() bool {
	return c.AgentPassword != "" && c.PoolerPassword != "" && c.PoolerAdminPassword != ""
}

// ReadCredentials reads the file that Init wrote. It refuses a file that others can read.
func ReadCredentials(path string) (Credentials, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Credentials{}, fmt.Errorf("credentials file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return Credentials{}, fmt.Errorf("credentials file %s: others can read it; its mode must be 0600", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Credentials{}, fmt.Errorf("credentials file: %w", err)
	}
	var c Credentials
	if json.Unmarshal(text, &c) != nil || !c.complete() {
		return Credentials{}, fmt.Errorf("credentials file %s: not what agent init wrote; restore it, or remove it and run "+
			"agent init --new-passwords", path)
	}
	return c, nil
}

// writeNew writes a file with new passwords.
func writeNew(path string, owner *FileOwner) (Credentials, error) {
	c := Credentials{AgentPassword: rand.Text(), PoolerPassword: rand.Text(), PoolerAdminPassword: rand.Text()}
	return c, writeCredentials(path, c, owner)
}

func writeCredentials(path string, c Credentials, owner *FileOwner) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".credentials-*") // mode 0600
	if err != nil {
		return fmt.Errorf("credentials file: %w", err)
	}
	defer func() { _ = os.Remove(temp.Name()) }() // gone already after the rename
	_, err = temp.Write(append(text, '\n'))
	if owner != nil {
		err = errors.Join(err, temp.Chown(owner.UID, owner.GID))
	}
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return fmt.Errorf("credentials file: %w", err)
	}
	if err := errors.Join(os.Rename(temp.Name(), path), syncFolder(filepath.Dir(path))); err != nil {
		return fmt.Errorf("credentials file: %w", err)
	}
	return nil
}

// syncFolder makes a rename survive a power failure: the server keeps the passwords that follow.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// newVerifier computes what PostgreSQL shall store of a password.
func newVerifier(password string) string {
	var salt [16]byte
	_, _ = rand.Read(salt[:]) // never fails
	return credential.Verifier(password, salt, credential.Iterations)
}
