package store

import (
	"context"
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
		{"an entry needs its transaction", auditNeedsTransaction},
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

func auditPages(w *world) {
	db, other := newID[id.DatabaseID](), newID[id.DatabaseID]()
	w.addEntryOfLog(w.entry(other, 0))
	var want []audit.Entry
	for i := range 6 {
		want = append(want, w.addEntryOfLog(w.entry(db, i/3)))
	}
	position := func(e audit.Entry) ports.Position { return ports.Position{At: e.At, ID: string(e.ID)} }
	pagesOf(w, want, position, -1, func(ctx context.Context, tx ports.Tx, p ports.Page) ([]audit.Entry, error) {
		return tx.Audit().List(ctx, db, p)
	})
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
	position := func(e audit.Entry) ports.Position { return ports.Position{At: e.At, ID: string(e.ID)} }
	pagesOf(w, want, position, -1, func(ctx context.Context, tx ports.Tx, p ports.Page) ([]audit.Entry, error) {
		return tx.Audit().OfInstallation(ctx, p)
	})
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
	position := func(e audit.Entry) ports.Position { return ports.Position{At: e.At, ID: string(e.ID)} }
	pagesOf(w, want, position, -1, func(ctx context.Context, tx ports.Tx, p ports.Page) ([]audit.Entry, error) {
		return tx.Audit().OfAccount(ctx, w.account.ID, p)
	})
}

func auditNeedsTransaction(w *world) {
	e := w.entry(newID[id.DatabaseID](), 0)
	w.refused("the caller's error", errChanged, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Audit().Add(ctx, e); err != nil {
			return err
		}
		return errChanged
	})
	w.view(func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Audit().List(ctx, e.DatabaseID, ports.Page{})
		w.equal("the log after the rollback", len(got), 0)
		return err
	})
}
