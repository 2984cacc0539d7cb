package crash_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
)

// previewFlow makes a preview; or has it deleted, by its pipeline or by the end of its lease.
type previewFlow struct {
	end  string // "": it is made; "asked for" or "lease": it is deleted
	ci   *user
	made wire.CreatedPreview
}

func (f *previewFlow) ready(t *testing.T, w *world) {
	owner := w.newUser(t, 2)
	n := must(w.Admin(soon(t), "ci-namespace", "create", "--account", owner.ID, "--name", "web"))(t)
	k := must(w.Admin(soon(t), "ci-key", "create", "--namespace", fmt.Sprint(n["namespaceId"])))(t)
	pipeline := *owner
	pipeline.Key = fmt.Sprint(k["apiKey"])
	f.ci = &pipeline
	if f.end != "" {
		f.made = must(f.open(t, w.api))(t)
	}
}

func (f *previewFlow) open(t *testing.T, api *stack.Host) (wire.CreatedPreview, error) {
	t.Helper()
	return f.ci.at(api).Previews.Create(soon(t), wire.CreatePreview{Ref: "refs/pull/17"})
}

func (f *previewFlow) of() id.DatabaseID { return f.made.Data.DatabaseID }

func (f *previewFlow) act(t *testing.T, w *world, api *stack.Host) {
	switch f.end {
	case "":
		_, err := f.open(t, api)
		mayHaveFailed(t, err)
	case "lease": // no test moves the clock of these processes
		must(w.meta.ExecContext(soon(t), "UPDATE previews SET expires_at = created_at FROM databases d "+
			"WHERE d.id = database_id AND d.id = $1", f.of()))(t)
	default:
		_, err := f.ci.at(api).Previews.Delete(soon(t), f.of())
		mayHaveFailed(t, err)
	}
}

func (f *previewFlow) repeat(t *testing.T, w *world) {
	if f.end == "asked for" {
		must(f.ci.at(w.api).Previews.Delete(soon(t), f.of()))(t)
	}
}

func (f *previewFlow) check(t *testing.T, w *world, api *stack.Host) {
	if f.end == "" {
		made := must(f.open(t, api))(t)
		if again := must(f.open(t, w.api))(t); again != made || made.Data.LeaseStatus != preview.Active {
			t.Errorf("%+v, and then %+v", made, again)
		}
		noError(t, w.customer(t, made.Connection.ConnectionString).PingContext(soon(t)))
		return
	}
	eventually(t, "the preview is deleted", func() (bool, string) {
		p := must(f.ci.at(api).Previews.Get(soon(t), f.of()))(t)
		return p.LeaseStatus == preview.Deleted, fmt.Sprintf("%+v", p)
	})
	var deletions int
	noError(t, w.meta.QueryRowContext(soon(t), "SELECT count(*) FROM operations WHERE database_id = $1 AND kind = $2",
		f.of(), deletion.KindDelete).Scan(&deletions))
	if deletions != 1 {
		t.Errorf("it was deleted %d times", deletions)
	}
	if next := must(f.open(t, w.api))(t); next.Data.DatabaseID == f.of() {
		t.Errorf("the ref has the deleted preview: %+v", next)
	}
}

// previewing are few cases: previews are made and deleted by operations that have cases of their own at every point, and the
// core's tests kill at each of them over previews.
func previewing() []killing {
	leaseEnds := func() flow { return &previewFlow{end: "lease"} }
	return append([]killing{
		kill(inAPI, "preview", &previewFlow{}, work.Reserved(databases.KindCreate)),
		kill(inAPI, "preview that is deleted", &previewFlow{end: "asked for"}, work.Reserved(deletion.KindDelete)),
	}, aroundCommits(inBatch, deletion.KindDelete, "preview whose lease ends", leaseEnds, "backup", "isolate", "succeeded")...)
}
