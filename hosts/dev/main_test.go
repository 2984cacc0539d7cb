package dev

import (
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestMain(m *testing.M) {
	if err := sample.Tests(3, "TestTheREADMEsSessionWorksAndARestartKeepsEverything"); err != nil {
		panic(err)
	}
	os.Exit(clustertest.Main(m))
}
