package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	dataFolder   = "data"
	passwordFile = "superuser.password"
)

// initialize makes dir/data with initdb, and dir/superuser.password, where there are none yet. It ends with a rename, so an
// interrupted start begins again from scratch.
func initialize(ctx context.Context, o Options, dir string) error {
	data := filepath.Join(dir, dataFolder)
	if _, err := os.Stat(data); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(dir, "initdb-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	password := filepath.Join(dir, passwordFile)
	if err := os.WriteFile(password, []byte(rand.Text()), 0o600); err != nil {
		return err
	}
	if err := Own(fresh, password); err != nil {
		return err
	}
	if err := initdb(ctx, o, filepath.Join(fresh, dataFolder), password); err != nil {
		return err
	}
	return os.Rename(filepath.Join(fresh, dataFolder), data)
}

// initdb takes the locale C.UTF-8, whose order is that of code points and so never changes with an upgrade of the system; C
// has the same order, for systems that do not know the first.
func initdb(ctx context.Context, o Options, data, password string) error {
	err := runInitdb(ctx, o, data, password, "C.UTF-8")
	if err != nil && strings.Contains(err.Error(), "locale") {
		err = runInitdb(ctx, o, data, password, "C")
	}
	return err
}

func runInitdb(ctx context.Context, o Options, data, password, locale string) error {
	args := []string{
		"--pgdata=" + data, "--username=" + Superuser, "--pwfile=" + password, "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=" + locale, "--no-instructions",
	}
	if o.Fast {
		args = append(args, "--no-sync")
	}
	p, err := startProcess(spec{
		path: o.Tools.Initdb, args: args, reads: []string{data, password, o.Tools.Postgres}, orphan: syscall.SIGKILL,
	})
	if err != nil {
		return err
	}
	if err := p.wait(ctx); err != nil {
		return errors.Join(err, p.kill())
	}
	if p.err != nil {
		return fmt.Errorf("initdb: %s (%w)", p.tail.lastError(), p.err)
	}
	return nil
}
