package agent_test

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	conformance "github.com/pgherd/pgherd/acceptance/conformance/agent"
	"github.com/pgherd/pgherd/acceptance/objectstore"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/blob/s3"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/hosts/toolchain"
	"github.com/pgherd/pgherd/ports"
)

// The real agent on a real PostgreSQL and PgBouncer, reached over HTTPS as the control plane reaches it.
func TestRealAgent(t *testing.T) {
	t.Parallel()
	s := startReal(t, agenttest.Own(t))
	// max_connections, and of these those kept for superusers, for the agent and for questions of PgBouncer's
	known, err := ports.Ask(t.Context(), s.Agent, command.AskCapabilities{})
	if err != nil || known.Connections != 250-3-10-4 {
		t.Errorf("the server has %d connections for databases (%v)", known.Connections, err)
	}
	conformance.Agent(t, 30, func(*testing.T) conformance.Stand { return s })
}

func TestRealArchive(t *testing.T) {
	t.Parallel()
	stack := agenttest.Archived(t)
	s := startReal(t, stack)
	stack.SendArchiveKey(t)
	conformance.Archive(t, 8, func(*testing.T) conformance.Stand { return s })
}

func TestRealArchiveKeys(t *testing.T) {
	t.Parallel()
	s, tools := agenttest.Own(t), must(toolchain.Find())(t)
	s.Config.Archive = &agent.Archive{
		PgBackRest: tools.PgBackRest, Postgres: tools.Postgres, Socket: filepath.Join(t.TempDir(), "push"),
	}
	conformance.ArchiveKeys(t, startReal(t, s))
}

// The servers keep all that they have in one bucket, or each in a folder of its own.
func TestRealHeritage(t *testing.T) {
	t.Parallel()
	for _, where := range sample.OneIn(t, 2, []string{"bucket", "folders"}) {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			lost, heir := agenttest.Archived(t), agenttest.Archived(t)
			kept, nothing := lost.Config.BackupDir, t.TempDir()
			if where == "bucket" {
				objects := objectstore.Start(t)
				keepIn(t, lost, objects.Config("lost"))
				keepIn(t, heir, objects.Config("heir"))
				kept, nothing = filepath.Join(objects.Objects(), "lost"), "elsewhere"
			}
			ctx, end := context.WithCancel(t.Context())
			_, _, ended := lost.Started(ctx, t)
			lost.StartBouncer(t.Context(), t)
			conformance.Heritage(t, conformance.Estate{
				Lost: standOf(t, lost), Heir: startReal(t, heir), Nothing: nothing,
				Lose: func(t *testing.T) {
					t.Helper()
					noError(t, lost.PG.Kill())
					end()
					<-ended
					if where == "bucket" {
						noError(t, os.RemoveAll(lost.Config.BackupDir))
					}
				},
				Rot: func(t *testing.T, db id.DatabaseID, filename backup.Filename) {
					t.Helper()
					paths := must(filepath.Glob(filepath.Join(kept, string(db), filename.Stem()+".*.data")))(t)
					if len(paths) != 1 {
						t.Fatalf("of the backup there are %v", paths)
					}
					stored := must(os.ReadFile(paths[0]))(t)
					stored[len(stored)/2] ^= 1
					noError(t, os.WriteFile(paths[0], stored, 0o600))
				},
			})
		})
	}
}

// keepIn has an agent keep its archive and backups in a bucket.
func keepIn(t *testing.T, s *agenttest.Stack, bucket s3.Config) {
	t.Helper()
	s.Config.Blobs, s.Config.Bucket = must(s3.New(bucket))(t), &bucket
}

func startReal(t *testing.T, s *agenttest.Stack) conformance.Stand {
	t.Helper()
	return standOf(t, s.Start(t))
}

// standOf is a stack that has started.
func standOf(t *testing.T, s *agenttest.Stack) conformance.Stand {
	t.Helper()
	box := fakebox.New()
	record := server.Server{ID: "33333333-3333-4333-8333-333333333333", AgentURL: "https://" + s.Config.Listen, CA: s.CA(t)}
	record.SealedSecret = must(box.Seal([]byte(agenttest.Secret), record.SecretContext()))(t)
	fleet := agentclient.New(box, agentclient.Options{})
	t.Cleanup(fleet.Close)
	return conformance.Stand{Agent: must(fleet.Agent(record))(t), Server: realServer{t, s}}
}

var noError = check.NoError

func must[T any](result T, err error) func(testing.TB) T { return check.Must(result, err) }

var loopback = netip.MustParseAddr("127.0.0.1")
