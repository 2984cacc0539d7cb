package crash_test

import (
	"net"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/agentclient"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/ports"
)

// client reaches the agent as the control plane does.
func (w *world) client(t *testing.T) ports.Agent {
	t.Helper()
	ca, err := os.ReadFile(w.CAFile())
	noError(t, err)
	box := fakebox.New()
	record := server.Server{ID: "33333333-3333-4333-8333-333333333333", AgentURL: w.AgentURL(), CA: string(ca)}
	record.SealedSecret = must(box.Seal([]byte(w.AgentSecret()), record.SecretContext()))(t)
	fleet := agentclient.New(box, agentclient.Options{})
	t.Cleanup(fleet.Close)
	return must(fleet.Agent(record))(t)
}

// isFenced fails the test unless the agent refuses a worker of an earlier epoch.
func (w *world) isFenced(t *testing.T, operation id.OperationID, epoch int64) {
	t.Helper()
	err := ports.Close(soon(t), w.client(t), ports.Fence{OperationID: operation, Epoch: epoch})
	if !command.RefusedFor(err, command.ReasonFenced) {
		t.Errorf("the agent answers a worker of epoch %d: %v", epoch, err)
	}
}

// awaitLost waits until a host has found out that it lost the lease of an operation.
func awaitLost(t *testing.T, p *stack.Process, operation id.OperationID) {
	t.Helper()
	eventually(t, "the sleeper finds out", func() (bool, string) {
		return slices.Contains(logged(t, p, "operation.lease_lost", ""), string(operation)), "no line in its log"
	})
}

// A worker that slept past its lease writes nothing when it wakes, and the agent does not hear it.
func TestSleepingWorkerWritesNothing(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	g := newLoadedGuest(t, w, "sleep")
	release := g.holdUp(t)
	o := g.startBackup(t, w.api)
	w.atWork(t, o)
	noError(t, w.agent.Freeze()) // so that the next step does not end
	epoch := w.awaitStep(t, o.ID)
	noError(t, w.batch.Freeze())
	next := must(w.StartBatch(soon(t), "", "--lease-hold", "10m"))(t)
	w.awaitEpoch(t, o.ID, epoch+1)
	noError(t, next.Freeze()) // it keeps its long lease, and now nobody else changes anything
	before := w.records(t)
	noError(t, w.batch.Thaw())
	awaitLost(t, w.batch.Process, o.ID)
	if diff := cmp.Diff(before, w.records(t)); diff != "" {
		t.Errorf("the sleeper changed (- to +):\n%s", diff)
	}
	noError(t, w.batch.Kill())
	noError(t, next.Thaw())
	noError(t, w.agent.Thaw())
	release()
	w.settled(t)
	w.isFenced(t, o.ID, int64(epoch))
	if done := g.operation(t, w.api, o.ID); done.Status != "succeeded" {
		t.Errorf("the backup: %+v", done)
	}
	g.restores(t, w, w.api, g.backups(t, w.api)[0])
}

// awaitStep waits until a step of an operation is under way that does not end, and returns its epoch.
func (w *world) awaitStep(t *testing.T, operation id.OperationID) (epoch int) {
	t.Helper()
	const query = "SELECT lease_epoch FROM operations WHERE id = $1 AND lease_until IS NOT NULL"
	same := 0
	eventually(t, "a step", func() (bool, string) {
		var now int
		if err := w.meta.QueryRowContext(t.Context(), query, operation).Scan(&now); err != nil || now != epoch {
			epoch, same = now, 0
		}
		same++
		return epoch > 0 && same > 10, "none that lasts"
	})
	return epoch
}

// An API host that slept while the agent made a database finds that another has finished the work.
func TestSleepingHostWritesNothing(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	r := newRequest(t, w, database.Managed)
	host := must(w.StartAPI(soon(t), ""))(t)
	noError(t, w.agent.Freeze())
	told := make(chan struct{})
	go func() {
		defer close(told)
		_, err := r.send(t, host)
		mayHaveFailed(t, err)
	}()
	var operation id.OperationID
	eventually(t, "the work has begun", func() (bool, string) {
		found := column(t, w.meta, "SELECT id FROM operations")
		if len(found) == 1 {
			operation = id.OperationID(found[0])
		}
		return len(found) == 1, "no operation"
	})
	noError(t, host.Freeze())
	w.awaitEpoch(t, operation, 2)
	noError(t, w.agent.Thaw())
	w.settled(t)
	before := w.records(t)
	noError(t, host.Thaw())
	<-told
	awaitLost(t, host.Process, operation)
	if diff := cmp.Diff(before, w.records(t)); diff != "" {
		t.Errorf("the sleeper changed (- to +):\n%s", diff)
	}
	w.isFenced(t, operation, 1)
	w.logsIn(t, must(r.send(t, host))(t))
	w.settled(t)
}

// An agent that hangs is replaced. When it wakes it ends itself, and spoils nothing of its successor's work.
func TestSleepingAgentIsReplaced(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	g := newLoadedGuest(t, w, "replace")
	release := g.holdUp(t)
	o := g.startBackup(t, w.api)
	w.atWork(t, o)
	sleeper := w.agent
	noError(t, sleeper.Freeze())
	port, err := cluster.FreePort("127.0.0.1")
	noError(t, err)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	w.agent = must(w.LaunchAgent("", "--listen", address))(t)
	noError(t, w.AwaitAgentAt(soon(t), w.agent, "https://"+address))
	must(w.meta.ExecContext(soon(t), "UPDATE servers SET agent_url = $1", "https://"+address))(t)
	noError(t, w.batch.Kill()) // it waits for an answer of the sleeper
	noError(t, w.batch.Restart(soon(t), ""))
	w.atWork(t, o)
	noError(t, sleeper.Thaw())
	noError(t, sleeper.AwaitEnd(soon(t)))
	if sleeper.Killed() {
		t.Error("the sleeper did not end by itself")
	}
	release()
	w.settled(t)
	if done := g.operation(t, w.api, o.ID); done.Status != "succeeded" {
		t.Errorf("the backup: %+v", done)
	}
	g.restores(t, w, w.api, g.backups(t, w.api)[0])
	w.logsIn(t, w.newUser(t, 1).create(t, w.api, newName("replace")))
	w.settled(t)
}
