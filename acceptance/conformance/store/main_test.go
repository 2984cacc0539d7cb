package store_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestMain(m *testing.M) {
	sample.Tests(6)
	status := clustertest.Main(m)
	if recordFile != "" && status == 0 {
		if err := recorded.write(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	os.Exit(status)
}
