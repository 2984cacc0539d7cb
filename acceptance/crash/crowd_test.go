package crash_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Whoever repeats a request while the first is still at work, even on another host, gets the same database.
func TestOneKeyMakesOneDatabase(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	other, err := w.StartAPI(soon(t), "")
	noError(t, err)
	r := newRequest(t, w, database.Managed)
	const requests = 200
	answers := make([]wire.CreatedDatabase, requests)
	var crowd sync.WaitGroup
	for i := range requests {
		host := []*stack.Host{w.api, other}[i%2]
		crowd.Go(func() {
			var err error
			if answers[i], err = r.send(t, host); err != nil {
				t.Error(err)
			}
		})
	}
	crowd.Wait()
	for _, a := range answers {
		if !same(a, answers[0]) {
			t.Fatalf("one was told %+v, another %+v", answers[0], a)
		}
	}
	w.logsIn(t, answers[0])
	w.settled(t)
	if known := w.databases(t); len(known) != 1 {
		t.Errorf("there are %d databases", len(known))
	}
	r.fills(t, other, 1)
}

// Many creations at once, on two hosts, do not get past the quota.
func TestACrowdKeepsToItsQuota(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	other := must(w.StartAPI(soon(t), ""))(t)
	const quota, requests = 3, 12
	u := w.newUser(t, quota)
	var crowd sync.WaitGroup
	var made atomic.Int32
	for i := range requests {
		host := []*stack.Host{w.api, other}[i%2]
		crowd.Go(func() {
			name := newName("crowd")
			_, err := u.at(host).Databases.Create(soon(t), wire.CreateDatabase{Name: name, DisplayName: name})
			if err == nil {
				made.Add(1)
				return
			}
			refused(t, "one more than the quota", err, fault.PlanLimit)
		})
	}
	crowd.Wait()
	w.settled(t)
	if known := w.databases(t); made.Load() != quota || len(known) != quota {
		t.Errorf("%d were made, and there are %d databases", made.Load(), len(known))
	}
}

// Two batch hosts share the queue: each operation is claimed once, by one of them, and reaches the agent as one command.
func TestTwoBatchHostsRunNothingTwice(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	const databases = 16
	u := w.newUser(t, databases)
	other := must(w.StartBatch(soon(t), ""))(t)
	var crowd sync.WaitGroup
	for range databases {
		crowd.Go(func() {
			g := guest{user: u, db: u.create(t, w.api, newName("queue"))}
			g.startBackup(t, w.api)
		})
	}
	crowd.Wait()
	w.settled(t)
	ended := map[string]int{}
	for _, host := range []*stack.Host{w.batch, other} {
		if len(logged(t, host.Process, "operation.claimed", "backup")) == 0 {
			t.Errorf("%s has done nothing", host.Name)
		}
		for _, o := range logged(t, host.Process, "operation.succeeded", "backup") {
			ended[o]++
		}
	}
	done := column(t, w.meta, "SELECT id FROM operations WHERE kind = 'backup' AND status = 'succeeded'")
	if len(done) != databases {
		t.Errorf("%d of %d backups have succeeded", len(done), databases)
	}
	for _, o := range done {
		if ended[o] != 1 {
			t.Errorf("backup %s was ended %d times", o, ended[o])
		}
	}
	const twice = "SELECT operation_id FROM ledger.command GROUP BY operation_id HAVING count(*) > 1"
	if again := column(t, w.maintenance, twice); len(again) > 0 {
		t.Errorf("the agent heard more than one command of %v", again)
	}
}

// logged lists the operations of which a host has logged an event.
func logged(t *testing.T, p *stack.Process, event, kind string) (operations []string) {
	t.Helper()
	text := must(p.Log())(t)
	for line := range bytes.Lines(text) {
		var entry struct {
			Msg, OperationID, Kind string
			Epoch                  int
		}
		if json.Unmarshal(line, &entry) == nil && entry.Msg == event && (kind == "" || entry.Kind == kind) {
			operations = append(operations, entry.OperationID)
		}
	}
	return operations
}

// records is all that the metadata say of a database's work. Its size is left out: it is measured all the time.
func (w *world) records(t *testing.T) [][]string {
	t.Helper()
	const query = `SELECT (SELECT json_agg(o ORDER BY o.id) FROM operations o)::text, (SELECT json_agg(b ORDER BY b.filename)
		FROM backups b)::text, (SELECT json_agg(a ORDER BY a.id) FROM audit_entries a)::text,
		(SELECT json_agg(e ORDER BY e.id) FROM outbox_events e)::text,
		(SELECT json_agg(to_jsonb(d) - '{size_bytes,sized_at}'::text[] ORDER BY d.id) FROM databases d)::text`
	return rows(t, w.meta, query)
}

// awaitEpoch waits until the operation is claimed for the given time.
func (w *world) awaitEpoch(t *testing.T, operation id.OperationID, epoch int) {
	t.Helper()
	eventually(t, "another worker takes the operation", func() (bool, string) {
		var now int
		err := w.meta.QueryRowContext(t.Context(), "SELECT lease_epoch FROM operations WHERE id = $1", operation).Scan(&now)
		return err == nil && now >= epoch, strconv.Itoa(now)
	})
}
