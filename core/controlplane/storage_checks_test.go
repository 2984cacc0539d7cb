package controlplane_test

import (
	"testing"

	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/id"
)

// Of each server it is said where backups are and what is wrong there, also where its agent does not answer.
func TestCheckStorage(t *testing.T) {
	w := newWorld(t)
	check := func(of id.ServerID) (where, wrong string) {
		t.Helper()
		all := must(w.Operator.CheckStorage(w.ctx, of))(t)
		if len(all) != 1 {
			t.Fatalf("%d servers", len(all))
		}
		return all[0].Where, all[0].Wrong
	}
	where, wrong := check("")
	equal(t, "where", where, "/backups")
	equal(t, "wrong", wrong, "")
	w.server.SetStorage("there is no such bucket")
	_, wrong = check("")
	equal(t, "wrong", wrong, "there is no such bucket")
	w.wantFindings(doctor.StorageAway)
	w.server.SetUnreachable(true)
	if _, wrong = check(""); wrong == "" {
		t.Error("an agent that does not answer is well")
	}
	equal(t, "servers of another ID", len(must(w.Operator.CheckStorage(w.ctx, "none"))(t)), 0)
}
