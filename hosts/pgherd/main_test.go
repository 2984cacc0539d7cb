package main_test

import (
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

var program = stack.NewProgram()

func TestMain(m *testing.M) { os.Exit(program.Main(clusters{m})) }

// clusters runs the tests, then stops the cluster that they share.
type clusters struct{ m *testing.M }

func (c clusters) Run() int { return clustertest.Main(c.m) }
