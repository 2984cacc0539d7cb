package extensions_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/extension"
)

func qualifying(name extension.Name, version string) protocol.Command {
	return agenttest.Told(agenttest.NewUUID(), 1, command.QualifyExtension{Extension: name, Version: version})
}

// proved sends the command again and again until the proof is over.
func proved(t testing.TB, s *agenttest.Stack, c protocol.Command) (proof command.ExtensionProof) {
	t.Helper()
	check.Eventually(t, "the proof does not end", func() bool {
		proof = command.ExtensionProof{}
		check.NoError(t, json.Unmarshal(s.Done(t, c), &proof))
		return proof.State != command.ExtensionRunning
	})
	return proof
}

func wantQualified(t testing.TB, s *agenttest.Stack, c protocol.Command, version string) {
	t.Helper()
	want := command.ExtensionProof{
		State: command.ExtensionDone, Stage: "done", Qualified: true, Version: version, ServerVersion: s.One(t, "SHOW server_version"),
	}
	if got := proved(t, s, c); got != want {
		t.Errorf("%+v", got)
	}
}

// noProof checks that nothing of a proof is left, neither in PostgreSQL nor in the folder of backups.
func noProof(t testing.TB, s *agenttest.Stack, c protocol.Command) {
	t.Helper()
	compact := strings.ReplaceAll(c.OperationID, "-", "")
	check.Eventually(t, "something of the proof is left", func() bool {
		return s.One(t, "SELECT count(*) FROM pg_roles WHERE strpos(rolname, $1) > 0", compact) == "0" &&
			s.One(t, "SELECT count(*) FROM pg_database WHERE strpos(datname, $1) > 0", compact) == "0"
	})
	if files, err := os.ReadDir(s.Config.BackupDir + "/passing/" + c.OperationID); err == nil {
		t.Errorf("the folder of the proof is left, with %v", files)
	}
}

// An agent that is killed in a proof leaves nothing, whether somebody asks again or not.
func TestCrashWhileQualifying(t *testing.T) {
	t.Parallel()
	s := agenttest.CrashStack(t)
	points := []string{
		"agent.backup.reserved", "agent.backup.after-commit", "agent.backup.verify.granted", "agent.backup.after-verified",
		"agent.backup.after-login", "agent.backup.finished",
	}
	for i, point := range points {
		if !agenttest.Turn(i, 2, len(points)) && !agenttest.Turn(i, 3, len(points)) {
			continue
		}
		t.Run(point, func(t *testing.T) {
			c := qualifying(extension.Citext, agenttest.Supported(extension.Citext))
			s.Child(t, point).DiesOver(t, s, c)
			next := s.Child(t, "")
			if i%2 == 0 {
				wantQualified(t, s, c, agenttest.Supported(extension.Citext))
			}
			noProof(t, s, c)
			next.Kill()
		})
	}
	s.NoOrphans(t)
}
