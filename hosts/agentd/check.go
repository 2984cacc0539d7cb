package agentd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pgherd/pgherd/agent/commons"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/poolermem"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/internal/settings"
)

// check refuses settings with which the agent would wait for ever, or find out at the first backup only. It does not ask
// PostgreSQL or PgBouncer: those may start later than the agent.
func (s *Settings) check() error {
	a := s.Agent
	for _, check := range []func() error{
		func() error { return checkCredentials(a.CredentialsFile) },
		func() error { return checkRange("postgres-port", a.PostgresPort, 1, mostPort) },
		func() error { return checkRange("pooler-port", a.Pooler.ListenPort, 1, mostPort) },
		func() error { return checkRange("pooler-max-clients", a.Pooler.MaxClients, 1, math.MaxInt32) },
		func() error {
			return checkRange("pooler-max-packet", a.Pooler.MaxPacket, pooler.LeastPacket, pooler.MostPacket)
		},
		func() error { return checkRange("jobs", a.Jobs, 2, math.MaxInt32) }, // one account has half
		func() error {
			return checkRange("pooler-memory", int(a.PoolerMemory), poolermem.LeastBound, math.MaxInt)
		},
		func() error {
			return checkRange("transaction-ids", int(a.Commons.TransactionIDs), 1, commons.MostTransactionIDs)
		},
		func() error { return checkProgram("pg-dump", a.PgDump) },
		func() error { return checkFolder("data-dir", a.DataDir, "name the folder of PostgreSQL's data") },
		func() error { return checkSocketDir(a.Pooler.SocketDir) },
		func() error { return checkMakeable("pooler-dir", a.Pooler.Dir) },
		func() error { return checkMakeable("backup-dir", a.BackupDir) },
		s.Archive.check,
		s.checkServerProgram,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func checkCredentials(file string) error {
	_, err := setup.ReadCredentials(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w; pgherd agent init writes it", settings.Flag("credentials-file"), err)
	case err != nil:
		return fmt.Errorf("%s: %w", settings.Flag("credentials-file"), err)
	}
	return nil
}

const mostPort = 65535

func checkRange(flag string, value, least, most int) error {
	if value < least || value > most {
		return fmt.Errorf("%s: %d is not from %d to %d", settings.Flag(flag), value, least, most)
	}
	return nil
}

func checkProgram(flag, name string) error {
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("%s: %w; install it, or give its path", settings.Flag(flag), err)
	}
	return nil
}

// checkServerProgram refuses a program that could have nothing back. Whether it is of the server's version is seen once
// PostgreSQL answers.
func (s *Settings) checkServerProgram() error {
	if err := s.Agent.CheckServerProgram(context.Background()); err != nil {
		return fmt.Errorf("%s: %w", settings.Flag("postgres-program"), err)
	}
	return nil
}

func checkFolder(flag, path, advice string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder", path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; %s", settings.Flag(flag), err, advice)
	}
	return nil
}

// checkSocketDir refuses a folder that others may enter: log-ins through PgBouncer's socket bypass the allowlists. A service
// manager may make the folder when it starts PgBouncer, which is after the agent.
func checkSocketDir(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && !info.IsDir():
		err = fmt.Errorf("%s is no folder", path)
	case err == nil && info.Mode().Perm()&0o007 != 0:
		err = fmt.Errorf("%s has mode %04o, and all users of the machine may enter it; it must have 0700 or 0750", path,
			info.Mode().Perm())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", settings.Flag("pooler-socket-dir"), err)
	}
	return nil
}

// checkMakeable refuses a folder that is not there and cannot be made when it is needed.
func checkMakeable(flag, path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s: %s is no folder", settings.Flag(flag), path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", settings.Flag(flag), err)
	}
	return checkFolder(flag, filepath.Dir(path), "make it, and let the agent's user write there")
}
