package agentd

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/core/server"
)

// secrets are what the control plane has to show one of. They may stand in a file, which is followed while the agent runs: one a
// line, the newest first.
type secrets struct {
	path string // empty: they do not change
	used atomic.Pointer[[]string]

	mu        sync.Mutex
	complaint string // the last trouble that was logged
}

// openSecrets reads the secrets of a setting, or of a file.
func (s *Settings) openSecrets() (*secrets, error) {
	if s.Secret != "" && s.SecretFile != "" {
		return nil, errors.New("PGHERD_AGENT_SECRET and PGHERD_AGENT_SECRET_FILE are both set: leave one of them out")
	}
	if s.SecretFile == "" {
		list, err := server.ParseSecrets(s.Secret)
		if err != nil {
			return nil, fmt.Errorf("PGHERD_AGENT_SECRET: %w", err)
		}
		k := &secrets{}
		k.used.Store(&list)
		return k, nil
	}
	k := &secrets{path: s.SecretFile}
	_, err := k.renew()
	return k, err
}

// accepted are the newest that could be read.
func (k *secrets) accepted() []string { return *k.used.Load() }

// renew reads the file again and reports whether it holds other secrets than before. One that cannot be used leaves the former
// ones in force.
func (k *secrets) renew() (changed bool, err error) {
	text, err := os.ReadFile(k.path)
	if err != nil {
		return false, fmt.Errorf("PGHERD_AGENT_SECRET_FILE: %w", err)
	}
	list, err := server.ParseSecrets(string(text))
	if err != nil {
		return false, fmt.Errorf("PGHERD_AGENT_SECRET_FILE %s: %w", k.path, err)
	}
	if old := k.used.Load(); old != nil && slices.Equal(*old, list) {
		return false, nil
	}
	k.used.Store(&list)
	return true, nil
}

// Reread renews. It logs that, and trouble when it begins, not each time. Without a file it does nothing.
func (k *secrets) Reread(log *zap.Logger) {
	if k.path == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	changed, err := k.renew()
	switch {
	case err != nil && err.Error() != k.complaint:
		log.Warn("the agent's secrets cannot be read again; the former ones stay in force", zap.Error(err))
	case changed:
		log.Info("the agent's secrets were read again", zap.Int("accepted", len(k.accepted())))
	}
	k.complaint = ""
	if err != nil {
		k.complaint = err.Error()
	}
}
