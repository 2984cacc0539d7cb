package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// initializeFromTemplate copies a cluster that initdb made once, which takes a tenth of initdb's time.
func initializeFromTemplate(ctx context.Context, o Options) error {
	if _, err := os.Stat(filepath.Join(o.Dir, dataFolder)); err == nil {
		return nil
	}
	template, err := makeTemplate(ctx, o)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(o.Dir, dataFolder), os.DirFS(filepath.Join(template, dataFolder))); err != nil {
		return fmt.Errorf("copy the template cluster: %w", err)
	}
	password, err := os.ReadFile(filepath.Join(template, passwordFile))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.Dir, passwordFile), password, 0o600); err != nil {
		return err
	}
	return closeToOthers(filepath.Join(o.Dir, dataFolder))
}

// makeTemplate returns the template of these tools and this user, made by whoever comes first.
func makeTemplate(ctx context.Context, o Options) (string, error) {
	program, err := os.Stat(o.Tools.Postgres)
	if err != nil {
		return "", err
	}
	who, err := childUser()
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("%s %d %d %d", o.Tools.Postgres, program.Size(), program.ModTime().UnixNano(), who.uid)
	sum := sha256.Sum256([]byte(key))
	dir := filepath.Join(o.TemplateDir, fmt.Sprintf("postgresql-%d-", o.Tools.Major)+hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(o.TemplateDir, 0o700); err != nil {
		return "", err
	}
	unlock, err := lockFile(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	return dir, initialize(ctx, o, dir)
}

// closeToOthers gives a copied data folder the owner and the mode without which PostgreSQL does not start.
func closeToOthers(data string) error {
	return errors.Join(Own(data), os.Chmod(data, 0o700))
}

func lockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
}
