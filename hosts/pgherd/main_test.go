package main_test

import (
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestMain(m *testing.M) {
	sample.Tests(4)
	os.Exit(clustertest.Main(m))
}
