package controlplane_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/clones"
	"github.com/pgherd/pgherd/core/controlplane/previews"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
)

// copying is a world with a database that previews may have the data of, and the namespace of a pipeline.
func (w *world) copying() id.NamespaceID {
	w.t.Helper()
	w.clonable()
	must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.PreviewCopies = new(true) }))(w.t)
	w.caller = w.admit(w.key)
	return must(w.Operator.CreateNamespace(w.ctx, w.account.ID, "web"))(w.t).ID
}

func (w *world) copies(cp *controlplane.ControlPlane, of id.NamespaceID, ref string) (previews.Copied, error) {
	w.t.Helper()
	return cp.Previews.Copy(w.ctx, w.caller, previews.CopyRequest{
		Request: previews.Request{Ref: ref}, NamespaceID: of, SourceID: w.source(), At: w.then,
	})
}

// wantCopy expects what a finished copy leaves.
func (w *world) wantCopy(of id.NamespaceID) {
	w.t.Helper()
	made := must(w.copies(w.ControlPlane, of, "main"))(w.t)
	equal(w.t, "an open operation", made.Operation.ID, "")
	name := made.Made.Record.Name
	equal(w.t, "before in the copy", w.server.HasTable(name, "before"), true)
	equal(w.t, "after in the copy", w.server.HasTable(name, "after"), false)
	equal(w.t, "log-ins", w.logsIn(made.Made), true)
	equal(w.t, "lease", made.Preview.Lease, preview.Active)
	equal(w.t, "copies", w.server.Copies(), 0)
	equal(w.t, "files", w.server.Files(), 1)
	equal(w.t, "databases", w.databases(), 2)
}

// The same request finds the same preview, while it is made and after that, when the moment is long out of reach.
func TestAPreviewThatIsACopy(t *testing.T) {
	w := newWorld(t)
	of := w.copying()
	first := must(w.copies(w.ControlPlane, of, "main"))(t)
	again := must(w.copies(w.ControlPlane, of, "main"))(t)
	equal(t, "operation", again.Operation.ID, first.Operation.ID)
	equal(t, "preview", again.Preview.DatabaseID, first.Preview.DatabaseID)
	equal(t, "password", again.Made.Password != "" && again.Made.Password == first.Made.Password, true)
	equal(t, "fresh", first.Fresh && !again.Fresh, true)
	refused(t, errOf(w.copies(w.ControlPlane, of, "other")), fault.DatabaseStateConflict) // the source has one operation at a time
	w.succeeds(first.Operation)
	w.wantCopy(of)
	w.clock.Advance(4 * time.Hour)
	w.server.LoseSegments(w.then.Add(-time.Hour), w.clock.Now())
	must(w.copies(w.ControlPlane, of, "main"))(t)
	refused(t, errOf(w.copies(w.ControlPlane, of, "other")), fault.PointNotRecoverable)
}

func TestAPreviewThatIsACopySurvivesEveryCrash(t *testing.T) {
	var of id.NamespaceID
	killed(t, clones.Kind, func(w *world) { of = w.copying() }, func(w *world, cp *controlplane.ControlPlane) {
		_, _ = w.copies(cp, of, "main")
		w.work(cp)
	}, func(w *world) {
		_, _ = w.copies(w.ControlPlane, of, "main")
		w.work(w.ControlPlane)
		w.wantCopy(of)
	})
}

// What fails or is canceled leaves no preview, and its ref is free. A lease that ends meanwhile is ended once there is something
// to end.
func TestACopyThatDoesNotCome(t *testing.T) {
	for name, breaks := range map[string]func(w *world){
		"fails": func(w *world) {
			w.server.SetArchiving(false)
			w.work(w.ControlPlane)
			w.server.SetArchiving(true)
		},
		"is canceled": func(w *world) { must(w.cancels())(w.t) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			of := w.copying()
			must(w.copies(w.ControlPlane, of, "main"))(t)
			breaks(w)
			equal(t, "databases", w.databases(), 1)
			equal(t, "databases of the server", len(w.server.Databases()), 1)
			made := must(w.copies(w.ControlPlane, of, "main"))(t)
			w.succeeds(made.Operation)
			w.wantCopy(of)
		})
	}
	t.Run("outlives its lease", func(t *testing.T) {
		w := newWorld(t)
		made := must(w.copies(w.ControlPlane, w.copying(), "main"))(t)
		w.clock.Advance(25 * time.Hour)
		w.rounds(w.ControlPlane)
		w.rounds(w.ControlPlane)
		w.succeeds(made.Operation)
		for range 3 {
			w.clock.Advance(time.Minute)
			w.rounds(w.ControlPlane)
			w.work(w.ControlPlane)
		}
		equal(t, "databases", w.databases(), 1)
	})
}
