package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/blob/s3"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/snapshot"
	"github.com/pgherd/pgherd/hosts/internal/settings"
	"github.com/pgherd/pgherd/hosts/internal/version"
	"github.com/pgherd/pgherd/ports"
)

// snapshotStore is where a server has kept snapshots of the metadata.
type snapshotStore interface {
	// Snapshots lists them by installation and by name.
	Snapshots(ctx context.Context) ([]command.Snapshot, error)
	OpenSnapshot(ctx context.Context, of id.InstallationID, name snapshot.Name) (io.ReadCloser, int64, error)
}

// snapshotSource says where they are: in a folder, in an object store, or at an agent.
type snapshotSource struct {
	folder string
	s3     s3.Config
	agent  server.Server
	secret string // a file
	ca     string // a file
}

func (s *snapshotSource) flags(cmd *cobra.Command) {
	settings.ObjectStore(cmd, &s.s3)
	f := cmd.Flags()
	f.StringVar(&s.folder, "folder", "", "folder in which an agent keeps backups (its --backup-dir), or a copy of it")
	f.StringVar(&s.agent.AgentURL, "agent-url", "", "URL of an agent that keeps snapshots, such as https://db1.internal:8090")
	f.StringVar(&s.secret, "agent-secret-file", "", "file with that agent's shared secret")
	f.StringVar(&s.ca, "agent-ca-file", "", "certificates in PEM of the authorities that the agent's is checked by; empty: those "+
		"of the system")
}

var errOneSource = errors.New("say where the snapshots are: give one of --folder, --s3-endpoint and --agent-url")

func (s *snapshotSource) open(cmd *cobra.Command) (snapshotStore, error) {
	given := 0
	for _, text := range []string{s.folder, s.s3.Endpoint, s.agent.AgentURL} {
		if text != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, errOneSource
	case s.agent.AgentURL != "":
		return s.openAgent(cmd)
	case s.folder != "":
		if info, err := os.Stat(s.folder); err != nil || !info.IsDir() {
			return nil, errors.Join(fmt.Errorf("--folder: %s is no folder", s.folder), err)
		}
		return kept(blob.NewFolder(s.folder)), nil
	}
	blobs, err := settings.OpenObjectStore(cmd, s.s3)
	if err != nil {
		return nil, err
	}
	return kept(blobs), nil
}

// kept are the snapshots among blobs. Nothing is written, so that no folder of this machine is needed.
func kept(blobs blob.Store) snapshotStore { return store.New("", store.Options{Blobs: blobs}) }

func (s *snapshotSource) openAgent(cmd *cobra.Command) (snapshotStore, error) {
	if err := settings.Require(cmd, "agent-secret-file"); err != nil {
		return nil, err
	}
	secret, err := os.ReadFile(s.secret)
	if err != nil {
		return nil, fmt.Errorf("--agent-secret-file: %w", err)
	}
	line, _, _ := strings.Cut(string(secret), "\n")
	s.agent.SealedSecret = []byte(strings.TrimSpace(line))
	if s.ca != "" {
		pem, err := settings.Authorities("agent-ca-file", s.ca)
		if err != nil {
			return nil, err
		}
		s.agent.CA = string(pem)
	}
	agent, err := agentclient.New(asGiven{}, agentclient.Options{UserAgent: version.Product("pgherd")}).Agent(s.agent)
	return atAgent{agent}, err
}

// asGiven is the box of a secret that was never encrypted.
type asGiven struct{ noKeyring }

func (asGiven) Open(secret []byte, _ string) ([]byte, error) { return secret, nil }

// atAgent are the snapshots that an agent keeps.
type atAgent struct{ ports.Agent }

func (a atAgent) Snapshots(ctx context.Context) ([]command.Snapshot, error) {
	kept, err := ports.Ask(ctx, a.Agent, command.AskSnapshots{})
	return kept.Snapshots, err
}

func (a atAgent) OpenSnapshot(
	ctx context.Context, of id.InstallationID, name snapshot.Name,
) (io.ReadCloser, int64, error) {
	file, err := a.Open(ctx, command.OpenSnapshot{InstallationID: of, Name: name})
	return file.Body, file.Size, err
}
