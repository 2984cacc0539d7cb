// Package agenttest gives the agent's packages a stack for their tests: a real PostgreSQL that agent init has prepared, a real
// PgBouncer, and an agent. It starts once for a test binary:
//
//	func TestMain(m *testing.M) { os.Exit(agenttest.Main(m)) }
//
// Tests that kill, freeze or crowd a part of it take a stack of their own.
package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/adapters/certfile"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/child"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// childConfig, where set, makes this test binary an agent in a process of its own: one that can be killed.
const childConfig = "PGHERD_TEST_AGENT_CONFIG"

// Main runs the tests of a package, or an agent where the test binary is to be one. Of a sample, one in 64 tests runs, and
// those that always names: what needs no stack. It returns the exit status.
func Main(m *testing.M, always ...string) int {
	if text := os.Getenv(childConfig); text != "" {
		return runChild(text)
	}
	Become()
	// Tests with servers of their own mostly wait for processes: twice as many as cores share the machine.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	sample.Tests(64, always...)
	return clustertest.Main(m)
}

var becomes bool

// Become has this test binary be what servers with an archive call it as. Main calls it; a package with another main function
// does so first.
func Become() {
	becomes = true
	child.BecomeUnsynced()
	if len(os.Args) != 6 || os.Args[2] != "archive-push" { // as in setup.ArchiveCommand
		return
	}
	if err := archive.Hand(os.Args[4], os.Args[5]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, archive.ErrNoAgent) {
			os.Exit(archive.ExitNoAgent)
		}
		os.Exit(1)
	}
	os.Exit(0)
}

// runChild prints a line when the agent is in charge.
func runChild(text string) int {
	crash.ArmFromEnv()
	var c childSettings
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	own, err := certfile.Open("agent", c.Pair.CertFile, c.Pair.KeyFile)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c.Config.Certificate, c.Config.Secrets = own.Certificate, secrets
	a, err := agent.New(c.Config, agent.Deps{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		<-a.Started()
		fmt.Println("in charge")
	}()
	if err := a.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return SupersededStatus
	}
	return 0
}

// SupersededStatus is the exit status of a child whose Run returned an error.
const SupersededStatus = 3

// secrets are what the agents of the tests take.
func secrets() []string { return []string{Secret} }
