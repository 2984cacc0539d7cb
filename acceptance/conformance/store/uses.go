package store

import (
	"testing"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Uses is the suite of ports.Uses.
func Uses(t *testing.T, m Metadata) {
	checkAll(t, m, []check{{"a thing is in use while the operation is open", usedWhileOpen}})
}

func usedWhileOpen(w *world) {
	source, copied, other := w.addDatabase("source"), w.addDatabase("copied"), w.addDatabase("other")
	o := w.addWork(copied.ID)
	want := []operation.Use{
		{OperationID: o.ID, DatabaseID: source.ID}, {OperationID: o.ID, DatabaseID: source.ID, Backup: "file", Exclusive: true},
	}
	elsewhere := operation.Use{OperationID: o.ID, DatabaseID: other.ID, Backup: "file"}
	for _, u := range append(want, elsewhere) {
		w.update(writing(ports.Tx.Uses, ports.Uses.Add, u))
	}
	of := func(db id.DatabaseID) []operation.Use { return read(w, ports.Tx.Uses, ports.Uses.Of, db) }
	w.equal("of the source", of(source.ID), want)
	w.equal("of another database", of(other.ID), []operation.Use{elsewhere})
	w.equal("of the operation's own", len(of(copied.ID)), 0)
	w.unknown("a use of an operation that does not exist",
		writing(ports.Tx.Uses, ports.Uses.Add, operation.Use{OperationID: newID[id.OperationID](), DatabaseID: source.ID}))
	w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, ended(o, operation.Succeeded)))
	w.equal("after the end", len(of(source.ID)), 0)
}
