package store

import (
	"testing"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Audit is the suite of ports.Audit.
func Audit(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a list has the entries of its database, in pages", auditPages},
		{"an entry may concern no database", auditOfNoDatabase},
		{"the installation has a list of its own", auditOfInstallation},
		{"an account has a list with that of its databases", auditOfAccount},
	})
}

func (w *world) entry(db id.DatabaseID, minute int) audit.Entry {
	return audit.Entry{
		ID: newID[id.AuditID](), At: minutes(minute), AccountID: w.account.ID, DatabaseID: db,
		Actor: audit.ByKey("pgh_ABCDEFGH", newID[id.UserID]()), Action: audit.EnvironmentChanged,
		Details: audit.Details{"from": "", "to": "production", "<&>": "ü\n\"\\"},
	}
}

func (w *world) addEntryOfLog(e audit.Entry) audit.Entry {
	w.Helper()
	w.update(writing(ports.Tx.Audit, ports.Audit.Add, e))
	return e
}

func entryAt(e audit.Entry) ports.Position { return at(e.At, e.ID) }

func auditPages(w *world) {
	db, other := newID[id.DatabaseID](), newID[id.DatabaseID]()
	w.addEntryOfLog(w.entry(other, 0))
	var want []audit.Entry
	for i := range 6 {
		want = append(want, w.addEntryOfLog(w.entry(db, i/3)))
	}
	pagesOf(w, want, entryAt, -1, paged(ports.Tx.Audit, ports.Audit.List, db))
}

func auditOfNoDatabase(w *world) {
	e := w.entry("", 0)
	e.AccountID, e.Details = "", nil
	w.addEntryOfLog(e)
	db := newID[id.DatabaseID]()
	bare := w.entry(db, 0)
	bare.AccountID, bare.Actor, bare.Details = "", audit.System, nil
	w.addEntryOfLog(bare)
	w.equal("an entry of no account, of nobody and without details",
		read2(w, ports.Tx.Audit, ports.Audit.List, db, ports.Page{}), []audit.Entry{bare})
}

func auditOfInstallation(w *world) {
	w.addEntryOfLog(w.entry(newID[id.DatabaseID](), 0))
	w.addEntryOfLog(w.entry("", 0)) // of an account
	ofDatabase := w.entry(newID[id.DatabaseID](), 0)
	ofDatabase.AccountID = ""
	w.addEntryOfLog(ofDatabase)
	var want []audit.Entry
	for i := range 4 {
		e := w.entry("", i/2)
		e.AccountID = ""
		want = append(want, w.addEntryOfLog(e))
	}
	pagesOf(w, want, entryAt, -1, paged0(ports.Tx.Audit, ports.Audit.OfInstallation))
}

func auditOfAccount(w *world) {
	ofOther := w.entry("", 0)
	_, theirs := w.addAccount("bob@example.com")
	ofOther.AccountID = theirs.ID
	w.addEntryOfLog(ofOther)
	ofOther.ID, ofOther.AccountID = newID[id.AuditID](), ""
	w.addEntryOfLog(ofOther)
	var want []audit.Entry
	for i := range 4 {
		want = append(want, w.addEntryOfLog(w.entry([]id.DatabaseID{"", newID[id.DatabaseID]()}[i%2], i/2)))
	}
	pagesOf(w, want, entryAt, -1, paged(ports.Tx.Audit, ports.Audit.OfAccount, w.account.ID))
}
