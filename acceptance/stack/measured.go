package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pgherd/pgherd/hosts/toolchain"
)

// Measured is a stack for measurements: made of the tree, with fsync on, and in a folder below the repository. The system's
// folder for temporary files may be in memory, where an fsync costs nothing.
type Measured struct {
	*Stack
	// Dir is the folder, which PostgreSQL's system user passes through. The stack has one in it.
	Dir string
}

// StartMeasured starts a stack in a folder whose name begins with one. The caller calls End also where it fails.
func StartMeasured(ctx context.Context, name string) (*Measured, error) {
	m := &Measured{}
	root, err := toolchain.Root()
	if err != nil {
		return m, err
	}
	state := filepath.Join(root, ".pgherd")
	if err := os.MkdirAll(state, 0o755); err != nil {
		return m, err
	}
	if m.Dir, err = os.MkdirTemp(state, name+"-"); err != nil {
		return m, err
	}
	dir := filepath.Join(m.Dir, "stack")
	if err := errors.Join(os.Chmod(m.Dir, 0o755), os.Mkdir(dir, 0o755)); err != nil {
		return m, err
	}
	binary, err := Build(ctx, "pgherd")
	if err != nil {
		return m, err
	}
	m.Stack, err = Start(ctx, Options{Dir: dir, Binary: binary, Durable: true})
	return m, err
}

// End stops the stack, and removes the folder unless that fails.
func (m *Measured) End() error {
	if m.Stack != nil {
		if err := m.Stop(); err != nil {
			return fmt.Errorf("stopping; the logs are in %s: %w", m.Dir, err)
		}
	}
	return os.RemoveAll(m.Dir)
}
