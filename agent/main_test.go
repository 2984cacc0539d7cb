package agent_test

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
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// childConfig, where set, makes this test binary an agent in a process of its own: one that can be killed.
const childConfig = "PGHERD_TEST_AGENT_CONFIG"

func TestMain(m *testing.M) {
	if text := os.Getenv(childConfig); text != "" {
		os.Exit(runChild(text))
	}
	// Tests with servers of their own mostly wait for processes: twice as many as cores share the machine.
	err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	if err = errors.Join(err, sample.Tests(8)); err != nil {
		panic(err)
	}
	os.Exit(clustertest.Main(m))
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
		return supersededStatus
	}
	return 0
}

// supersededStatus is the exit status of a child whose Run returned an error.
const supersededStatus = 3

// secrets are what the agents of the tests take.
func secrets() []string { return []string{secret} }
