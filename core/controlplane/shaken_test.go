package controlplane_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// shaken is about what act does as operations of one kind: every write and every read of the metadata and every call of an agent
// goes wrong once, in each way that there is and each time in a world of its own. The process goes on, who was refused asks
// again a minute later, and check is called when the work is finished.
func shaken(
	t *testing.T, kind operation.Kind, prepare func(*world), act func(*world, *controlplane.ControlPlane), check func(*world),
) {
	w := newWorld(t)
	prepare(w)
	cp, undisturbed := w.struckBy(point{})
	act(w, cp)
	begun, good := w.ofKind(kind)
	check(w)
	for _, at := range sample.OneIn(t, 20, undisturbed.points) {
		t.Run(at.String(), func(t *testing.T) {
			w := newWorld(t)
			prepare(w)
			cp, s := w.struckBy(at)
			w.shaken = true
			act(w, cp)
			w.allAreThere()
			w.work(cp)
			if nowBegun, nowGood := w.ofKind(kind); nowBegun < begun || nowGood < good {
				act(w, cp)
				w.work(cp)
			}
			equal(t, "it came to that", s.hit, true)
			s.ends()
			w.shaken = false
			check(w)
		})
	}
}

// ofKind counts the operations of a kind, and those of them that have not failed.
func (w *world) ofKind(k operation.Kind) (all, good int) {
	w.t.Helper()
	for _, o := range must(w.Operator.FindOperations(w.ctx, ports.OperationFilter{Kind: k}, ports.Page{}))(w.t) {
		if all++; o.Status != operation.Failed {
			good++
		}
	}
	return all, good
}
