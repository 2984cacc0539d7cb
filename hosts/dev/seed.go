package dev

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
)

// seed is what the first start makes and later starts keep. It holds the keys' texts, so its file is for the owner only.
type seed struct {
	AccountID id.AccountID `json:"accountId"`
	APIKey    string       `json:"apiKey"`
	CIKey     string       `json:"ciKey"`
}

// plant returns the seed of an earlier start, or makes account, keys and namespace, switches every feature on, and arranges
// that each new database of the account is enrolled for every limited-rollout route.
func plant(ctx context.Context, file string, o *operator.Operator) (seed, error) {
	s, err := readSeed(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	// An address of its own, so that a first start that was cut short does not stand in the way of the next.
	email := "owner-" + strings.ToLower(system.Entropy{}.Base62(8)) + "@example.com"
	a, _, err := o.CreateAccount(ctx, operator.NewAccount{
		Email: email, Name: "Development owner", Plan: account.Business,
	})
	if err != nil {
		return s, err
	}
	s.AccountID = a.ID
	if _, s.APIKey, err = o.CreateKey(ctx, keys.NewKey{
		AccountID: a.ID, Label: "development", Scope: account.FullAccount,
	}); err != nil {
		return s, err
	}
	namespace, err := o.CreateNamespace(ctx, a.ID, "development")
	if err != nil {
		return s, err
	}
	if _, s.CIKey, err = o.CreateCIKey(ctx, namespace.ID); err != nil {
		return s, err
	}
	for _, name := range rollout.Features() {
		if err := o.SetFeature(ctx, name, true); err != nil {
			return s, err
		}
	}
	if err := o.SetAutoEnroll(ctx, a.ID, true); err != nil {
		return s, err
	}
	return s, s.write(file)
}

// certify makes a key for certificates where there is none.
func certify(ctx context.Context, o *operator.Operator) error {
	known, err := o.CertificateKeys(ctx)
	if err == nil && len(known) == 0 {
		_, err = o.CreateCertificateKey(ctx)
	}
	return err
}

func readSeed(file string) (s seed, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

func (s seed) write(file string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return writeFile(file, append(text, '\n'))
}

// writeFile replaces a file of the owner's in one step.
func writeFile(file string, text []byte) error {
	temporary := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".new")
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, file)
}
