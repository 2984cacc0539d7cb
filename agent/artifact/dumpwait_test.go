package artifact_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// A customer whose open transaction keeps the login of a dump from being made keeps nobody else's from it.
func TestDumpThatWaitsForItsLoginHoldsUpNoOther(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	for _, each := range []*world{w, other} {
		each.load(`CREATE TABLE t (a int)`)
	}
	open, err := clustertest.Database{URL: w.patient("shop")}.Open(t).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer open.Rollback()
	if _, err := open.Exec(`GRANT TEMPORARY ON DATABASE ` + w.Name + ` TO "shop reader"`); err != nil {
		t.Fatal(err)
	}
	ended := w.waitingRun()
	request := other.request()
	request.OperationID = "33333333-3333-4333-8333-333333333333"
	began := time.Now()
	if _, err := other.run(other.agent, request); err != nil || time.Since(began) > 15*time.Second {
		t.Errorf("the other backup took %s: %v", time.Since(began), err)
	}
	if err := open.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
