package store

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Operations is the suite of ports.Operations; the queue's part of it is that of Queue.
func Operations(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"an operation comes back as it was stored", operationComesBack},
		{"one operation of a database is open", oneIsOpen},
		{"a list has the kinds that are asked for, in pages", operationPages},
		{"refused ones are counted by kind", refusedAreCounted},
		{"operations of all databases are found", operationsAreFound},
		{"a later attempt is made due", attemptIsHastened},
		{"a sealed input is written once, and erased at the end", sealedInputIsErased},
		{"a cancellation is recorded", cancellationIsRecorded},
		{"a cancellation outlives the worker's next write", cancellationOutlivesSave},
	})
}

func getWork(w *world, op id.OperationID) operation.Operation {
	w.Helper()
	return read(w, ports.Tx.Operations, ports.Operations.Get, op)
}

func operationComesBack(w *world) {
	o := w.addWork(w.addDatabase("shop").ID)
	w.equal("as added", getWork(w, o.ID), o)
	w.equal("as the open one", read(w, ports.Tx.Operations, ports.Operations.Open, o.DatabaseID), o)
	started, finished := minutes(1), minutes(3)
	o.Status, o.Stage, o.Progress, o.Result = operation.Succeeded, "finished", 100, []byte(`{ "filename":"x" }`)
	o.SealedResult = []byte{0, 1}
	o.BytesDone, o.BytesTotal = 1<<40, 1<<41
	o.Input, o.StartedAt, o.FinishedAt = []byte(`{"step":2}`), &started, &finished
	o.ErrorCode, o.ErrorText, o.CancelRequested = fault.AgentError, "it went wrong: ünicode", true
	o.Owner, o.Attempts, o.NotBefore = "worker-1", 4, minutes(7)
	w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, o))
	w.equal("as saved", getWork(w, o.ID), o)
	w.equal("as locked", readLocked(w, ports.Tx.Operations, ports.Operations.Lock, o.ID), o)
	for what, read := range map[string]transaction{
		"an unknown operation":                 reading(ports.Tx.Operations, ports.Operations.Get, newID[id.OperationID]()),
		"an open operation, where it is final": reading(ports.Tx.Operations, ports.Operations.Open, o.DatabaseID),
	} {
		w.missing(what, read)
	}
	w.unknown("locking an unknown operation", reading(ports.Tx.Operations, ports.Operations.Lock, newID[id.OperationID]()))
}

func sealedInputIsErased(w *world) {
	sealed := func(name string) operation.Operation {
		return w.addWork(w.addDatabase(name).ID, func(o *operation.Operation) { o.SealedInput = []byte("sealed") })
	}
	save := func(o operation.Operation) {
		w.Helper()
		w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, o))
	}
	kept := func(what string, o operation.Operation, want []byte) {
		w.Helper()
		w.equal(what, getWork(w, o.ID).SealedInput, want)
	}
	o := sealed("shop")
	kept("as added", o, []byte("sealed"))
	// Who reads, and writes back later, writes no old value over one that was encrypted again meanwhile.
	was := ports.SealedValue{Ref: "operation-input/" + string(o.ID), Sealed: o.SealedInput}
	w.update(writing2(ports.Tx.SealedValues, ports.SealedValues.Replace, was, []byte("anew")))
	save(o)
	kept("after another was written back", o, []byte("anew"))
	for i, status := range []operation.Status{operation.Succeeded, operation.Failed, operation.Canceled} {
		o := sealed(numbered(i))
		save(ended(o, status))
		kept("one that is "+string(status), o, nil)
	}
	queued, running := sealed("queued"), sealed("running")
	running.Status = operation.Running
	save(running)
	for _, o := range []operation.Operation{queued, running} {
		c := o
		if at := minutes(1); c.Status == operation.Queued {
			c.Status, c.FinishedAt = operation.Canceled, &at
		}
		c.CancelRequested = true
		w.update(writing(ports.Tx.Operations, ports.Operations.RequestCancel, c))
	}
	kept("one that was canceled in the queue", queued, nil)
	kept("one that is to be canceled", running, []byte("sealed"))
}

func operationsAreFound(w *world) {
	shop, second := w.addDatabase("shop"), w.addServer("second", 9)
	blog := w.addDatabase("blog", nameServer(second.ID))
	first := w.addWork(shop.ID)
	last := w.work(blog.ID)
	last.ServerID, last.Kind, last.CreatedAt = second.ID, "create", minutes(1)
	w.update(writing(ports.Tx.Operations, ports.Operations.Add, last))
	lost := w.work(newID[id.DatabaseID]())
	at := minutes(2)
	lost.CreatedAt, lost.Status, lost.FinishedAt = minutes(2), operation.Failed, &at
	w.update(writing(ports.Tx.Operations, ports.Operations.Add, lost))
	all := []ports.FoundOperation{
		{Operation: lost, ServerName: w.server.Name}, {Operation: last, DatabaseName: "blog", ServerName: "second"},
		{Operation: first, DatabaseName: "shop", ServerName: w.server.Name},
	}
	open := []operation.Status{operation.Queued, operation.Running}
	for what, c := range map[string]struct {
		f    ports.OperationFilter
		p    ports.Page
		want []ports.FoundOperation
	}{
		"all":               {ports.OperationFilter{}, ports.Page{}, all},
		"the first":         {ports.OperationFilter{}, ports.Page{Limit: 1}, all[:1]},
		"what is open":      {ports.OperationFilter{Statuses: open}, ports.Page{}, all[1:]},
		"of a database":     {ports.OperationFilter{DatabaseID: shop.ID}, ports.Page{}, all[2:]},
		"on a server":       {ports.OperationFilter{ServerID: second.ID}, ports.Page{}, all[1:2]},
		"of a kind":         {ports.OperationFilter{Kind: "create"}, ports.Page{}, all[1:2]},
		"of nothing at all": {ports.OperationFilter{DatabaseID: shop.ID, Kind: "create"}, ports.Page{}, nil},
	} {
		w.equal(what, read2(w, ports.Tx.Operations, ports.Operations.Find, c.f, c.p), c.want)
	}
}

func attemptIsHastened(w *world) {
	o := w.work(w.addDatabase("shop").ID)
	o.NotBefore = minutes(9)
	w.update(writing(ports.Tx.Operations, ports.Operations.Add, o))
	hasten := func(op id.OperationID, at time.Time) transaction {
		return writing2(ports.Tx.Operations, ports.Operations.Hasten, op, at)
	}
	w.update(hasten(o.ID, minutes(5)))
	w.equal("earlier", getWork(w, o.ID).NotBefore, minutes(5))
	w.update(hasten(o.ID, minutes(7)))
	w.equal("not later", getWork(w, o.ID).NotBefore, minutes(5))
	w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, ended(w.mustClaim("worker-1", minutes(5)), operation.Failed)))
	w.unknown("a final one", hasten(o.ID, minutes(1)))
}

func oneIsOpen(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	conflict := fault.New(fault.DatabaseStateConflict, "")
	first := w.addWork(r.ID)
	w.addWork(other.ID)
	w.refused("a second open operation", conflict, writing(ports.Tx.Operations, ports.Operations.Add, w.work(r.ID)))
	claimed := w.work(r.ID).Claimed("worker-1", epoch, time.Minute)
	w.refused("a second one, claimed already", conflict, writing(ports.Tx.Operations, ports.Operations.Add, claimed))
	first = ended(first, operation.Failed)
	w.update(inOrder(writing(ports.Tx.Operations, ports.Operations.SaveLeased, first),
		writing(ports.Tx.Operations, ports.Operations.Add, claimed)))
	w.equal("one that was added claimed", getWork(w, claimed.ID), claimed)
	change, second := w.work(r.ID), w.work(r.ID)
	change.Logins, second.Logins = true, true
	w.update(writing(ports.Tx.Operations, ports.Operations.Add, change))
	w.equal("the one beside the change of a login", read(w, ports.Tx.Operations, ports.Operations.Open, r.ID), claimed)
	w.refused("a second change of a login", conflict, writing(ports.Tx.Operations, ports.Operations.Add, second))

	raced := w.addDatabase("raced")
	w.equal("winners of a race for a database", w.race(8, conflict, func(int) transaction {
		return writing(ports.Tx.Operations, ports.Operations.Add, w.work(raced.ID))
	}), 1)
}

// ended is an operation as its last write leaves it.
func ended(o operation.Operation, s operation.Status) operation.Operation {
	at := minutes(30)
	o.Status, o.FinishedAt = s, &at
	return o
}

// tallyOf is what some things of the world's server come to, by when they began.
func tallyOf[T any](w *world, of []T, began func(T) time.Time) ports.ServerTally {
	t := ports.ServerTally{Server: w.server.Name, Tally: ports.Tally{Count: int64(len(of))}}
	for _, one := range of {
		if at := began(one); t.Oldest == nil || at.Before(*t.Oldest) {
			t.Oldest = &at
		}
	}
	return t
}

func refusedAreCounted(w *world) {
	other := w.addServer("another", 1)
	counted := func(what string, want ...operation.Operation) {
		w.Helper()
		w.equal(what, read(w, ports.Tx.Operations, ports.Operations.Refused, "purge"), []ports.ServerTally{
			{Server: other.Name}, tallyOf(w, want, func(o operation.Operation) time.Time { return o.CreatedAt }),
		})
	}
	var all []operation.Operation
	for i, kind := range []operation.Kind{"purge", "purge", "purge", "delete"} {
		all = append(all, w.addWork(w.addDatabase(numbered(i)).ID, func(o *operation.Operation) { o.Kind = kind }))
	}
	counted("without errors")
	save := func(o operation.Operation) {
		w.Helper()
		w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, o))
	}
	for _, o := range append(all[:2:2], all[3]) {
		o.Enter(o.Stage, fault.New(fault.AgentError, "in service"))
		save(o)
	}
	counted("two, and one of another kind", all[:2]...)
	save(all[0])
	counted("when one goes on", all[1])
	failed := ended(all[1], operation.Failed)
	failed.ErrorCode = fault.AgentError
	save(failed)
	counted("when the other has ended")
}

func operationPages(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	w.addWork(other.ID)
	shown := []operation.Kind{"extension", "backup", "clone"}
	var want []operation.Operation
	for i, kind := range []operation.Kind{"create", "lifecycle", "backup", "restore", "clone", "delete", "recover", "extension"} {
		o := w.addWork(r.ID, func(o *operation.Operation) {
			*o = ended(*o, operation.Succeeded)
			o.Kind, o.CreatedAt = kind, minutes(i/3)
		})
		if slices.Contains(shown, kind) {
			want = append(want, o)
		}
	}
	position := func(o operation.Operation) ports.Position { return at(o.CreatedAt, o.ID) }
	pagesOf(w, want, position, -1, func(ctx context.Context, tx ports.Tx, p ports.Page) ([]operation.Operation, error) {
		return tx.Operations().List(ctx, r.ID, shown, p)
	})
}

func cancellationIsRecorded(w *world) {
	finished := minutes(1)
	queued := w.addWork(w.addDatabase("queued").ID)
	queued.Status, queued.Stage, queued.FinishedAt = operation.Canceled, operation.StageFinished, &finished
	w.update(writing(ports.Tx.Operations, ports.Operations.RequestCancel, queued))
	w.equal("a queued operation", getWork(w, queued.ID), queued)
	w.unknown("canceling what is final", writing(ports.Tx.Operations, ports.Operations.RequestCancel, queued))

	running := w.work(w.addDatabase("running").ID).Claimed("worker-1", epoch, time.Minute)
	running.NotBefore = minutes(60)
	w.update(writing(ports.Tx.Operations, ports.Operations.Add, running))
	running.CancelRequested, running.NotBefore = true, minutes(1)
	asked := running
	asked.Status, asked.FinishedAt, asked.Stage = operation.Canceled, &finished, "elsewhere"
	w.update(writing(ports.Tx.Operations, ports.Operations.RequestCancel, asked))
	w.equal("a running operation: the wish alone, at once", getWork(w, running.ID), running)
	asked.NotBefore = minutes(2)
	w.update(writing(ports.Tx.Operations, ports.Operations.RequestCancel, asked))
	w.equal("asked again", getWork(w, running.ID), running)
}

func cancellationOutlivesSave(w *world) {
	held := w.work(w.addDatabase("shop").ID).Claimed("worker-1", epoch, time.Minute)
	w.update(writing(ports.Tx.Operations, ports.Operations.Add, held))
	asked := held
	asked.CancelRequested, asked.NotBefore = true, minutes(1)
	w.update(writing(ports.Tx.Operations, ports.Operations.RequestCancel, asked))
	held.Stage, held.Progress, held.NotBefore = "dumping", 40, minutes(60)
	w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, held))
	held.CancelRequested, held.NotBefore = true, epoch
	w.equal("after a write that did not know of the wish", getWork(w, held.ID), held)
	held.NotBefore = minutes(60)
	w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, held))
	w.equal("after one that knew of it", getWork(w, held.ID), held)
}
