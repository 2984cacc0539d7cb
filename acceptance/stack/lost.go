package stack

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/pgherd/pgherd/hosts/cluster"
)

// dataDir is that of the server.
func (s *Stack) dataDir() string { return s.path("server", "data") }

// DataDir is the server's data directory.
func (s *Stack) DataDir() string { return s.dataDir() }

// Lose ends the server and PgBouncer by force, and removes all that is on their machine, but for the programs, the certificates
// and the agent's secret. Who runs an agent ends it before.
func (s *Stack) Lose() error {
	err := errors.Join(s.Server.Kill(), s.Pooler.Kill())
	for _, path := range []string{s.dataDir(), s.CredentialsFile(), s.PoolerDir(), s.options.BackupDir} {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return errors.Join(err, os.Mkdir(s.dataDir(), 0o700), cluster.Own(s.dataDir())) // as a package leaves it
}

// ArchiveKeyFile has the key of the server's archive once WriteArchiveKey has written it.
func (s *Stack) ArchiveKeyFile() string { return s.path("archive-key") }

// WriteArchiveKey has an operator be shown the key of the server's archive.
func (s *Stack) WriteArchiveKey(ctx context.Context) error {
	shown, err := s.Admin(ctx, "server", "archive-key", "--server", s.serverID, "--reason", "it burned", "--yes")
	if err != nil {
		return err
	}
	key, _ := shown["archiveKey"].(string)
	return os.WriteFile(s.ArchiveKeyFile(), []byte(key+"\n"), 0o600)
}

// LaunchRecover starts the command that brings the server back, which is to die at a crash point, or at none.
func (s *Stack) LaunchRecover(crashAt string, more ...string) (*Process, error) {
	args := []string{
		"agent", "recover", "--data-dir", s.dataDir(), "--archive-key-file", s.ArchiveKeyFile(), "--backup-dir", s.options.BackupDir,
		"--pgbackrest", s.tools.PgBackRest, "--postgres-program", s.tools.Postgres,
	}
	return s.launch(s.options.On, "recover", crashAt, append(append(args, s.options.AgentFlags...), more...)...)
}

// Recovering is the folder in which the server is made that comes back.
func (s *Stack) Recovering() string { return filepath.Clean(s.dataDir()) + ".recovering" }

// ServeAgain starts a server that has come back, prepares it, and starts PgBouncer and an agent, whose credentials are new.
func (s *Stack) ServeAgain(ctx context.Context) (*Process, error) {
	if err := s.Server.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	s.options.InitFlags = append(s.options.InitFlags, "--new-passwords")
	if err := s.prepareServer(ctx); err != nil {
		return nil, err
	}
	agent, err := s.LaunchAgent("")
	if err == nil {
		err = s.AwaitAgent(ctx, agent)
	}
	if err != nil {
		return agent, err
	}
	return agent, s.Pooler.Start(context.WithoutCancel(ctx))
}
