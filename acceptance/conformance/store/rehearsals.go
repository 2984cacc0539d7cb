package store

import (
	"encoding/json"
	"testing"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/ports"
)

// Rehearsals is the suite of ports.Rehearsals.
func Rehearsals(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"there is one rehearsal of a database for a version", lastRehearsal},
		{"a rehearsal goes with its database, and with its server", rehearsalGoes},
	})
}

func (w *world) addRehearsal(db id.DatabaseID, on id.ServerID, version int) rehearsal.Rehearsal {
	w.Helper()
	r := rehearsal.Rehearsal{
		DatabaseID: db, PostgresVersion: version, ServerID: on, OperationID: newID[id.OperationID](), EndedAt: epoch,
		SchemaSHA256: "a mark", Breaks: json.RawMessage(`[{"kind":"word"}]`),
	}
	w.update(writing(ports.Tx.Rehearsals, ports.Rehearsals.Put, r))
	return r
}

func (w *world) rehearsals(db id.DatabaseID) []rehearsal.Rehearsal {
	w.Helper()
	return read(w, ports.Tx.Rehearsals, ports.Rehearsals.Of, db)
}

func lastRehearsal(w *world) {
	db, second := w.addDatabase("shop").ID, w.addServer("second", 3).ID
	w.unknown("before", reading2(ports.Tx.Rehearsals, ports.Rehearsals.Last, db, 17))
	w.addRehearsal(db, w.server.ID, 17)
	eighteen, seventeen := w.addRehearsal(db, second, 18), w.addRehearsal(db, second, 17)
	w.equal("the last ones", w.rehearsals(db), []rehearsal.Rehearsal{seventeen, eighteen})
	w.equal("that of a version", read2(w, ports.Tx.Rehearsals, ports.Rehearsals.Last, db, 18), eighteen)
	w.equal("of another database", len(w.rehearsals(w.addDatabase("blog").ID)), 0)
}

func rehearsalGoes(w *world) {
	db, second := w.addDatabase("shop").ID, w.addServer("second", 3).ID
	here := w.addRehearsal(db, w.server.ID, 16)
	w.addRehearsal(db, second, 17)
	w.update(writing(ports.Tx.Servers, ports.Servers.Remove, second))
	w.equal("without the server", w.rehearsals(db), []rehearsal.Rehearsal{here})
	w.update(writing(ports.Tx.Databases, ports.Databases.Remove, db))
	w.equal("without the database", len(w.rehearsals(db)), 0)
	w.unknown("of no database", writing(ports.Tx.Rehearsals, ports.Rehearsals.Put, here))
}
