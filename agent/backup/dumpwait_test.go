package backup_test

import (
	"github.com/pgherd/pgherd/acceptance/check"

	"testing"
	"time"

	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// A customer whose open transaction keeps the login of a dump from being made keeps nobody else's from it.
func TestDumpThatWaitsForItsLoginHoldsUpNoOther(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	for _, each := range []*world{w, other} {
		each.Load(`CREATE TABLE t (a int)`)
	}
	open := check.Must(clustertest.Database{URL: w.Patient("shop")}.Open(t).Begin())(t)
	defer open.Rollback()
	check.Must(open.Exec(`GRANT TEMPORARY ON DATABASE ` + w.Name + ` TO "shop reader"`))(t)
	ended := w.WaitingRun()
	request := other.Request()
	request.OperationID = "33333333-3333-4333-8333-333333333333"
	began := time.Now()
	if _, err := other.Run(other.Agent, request); err != nil || time.Since(began) > 15*time.Second {
		t.Errorf("the other backup took %s: %v", time.Since(began), err)
	}
	check.NoError(t, open.Rollback())
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
