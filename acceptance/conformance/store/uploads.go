package store

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/ports"
)

// Uploads is the suite of ports.Uploads.
func Uploads(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a record comes back as it was stored and saved", uploadComesBack},
		{"those of an account are listed", uploadsOfAccount},
		{"expired ones and those of an ended operation are doomed", doomedUploads},
	})
}

func (w *world) addUpload(db id.DatabaseID, at int) upload.Upload {
	w.Helper()
	u := must(upload.New(newID[id.UploadID](), db, upload.MostBytes, strings.Repeat("ab", 32), minutes(at)))(w)
	w.update(writing(ports.Tx.Uploads, ports.Uploads.Add, u))
	return u
}

func uploadComesBack(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	u := w.addUpload(r.ID, 0)
	w.equal("the upload", read2(w, ports.Tx.Uploads, ports.Uploads.Get, r.ID, u.ID), u)
	w.missing("the upload of another database", reading2(ports.Tx.Uploads, ports.Uploads.Get, other.ID, u.ID))

	u.OperationID, u.ExpiresAt = w.addWork(r.ID).ID, minutes(7)
	w.update(writing(ports.Tx.Uploads, ports.Uploads.Save, u))
	w.equal("the saved upload", read2(w, ports.Tx.Uploads, ports.Uploads.Get, r.ID, u.ID), u)

	w.update(writing(ports.Tx.Uploads, ports.Uploads.Remove, u.ID))
	w.update(writing(ports.Tx.Uploads, ports.Uploads.Remove, u.ID))
	w.missing("the removed upload", reading2(ports.Tx.Uploads, ports.Uploads.Get, r.ID, u.ID))
	w.unknown("saving what is gone", writing(ports.Tx.Uploads, ports.Uploads.Save, u))
	u.DatabaseID = newID[id.DatabaseID]()
	w.unknown("an upload of no database", writing(ports.Tx.Uploads, ports.Uploads.Add, u))
}

func uploadsOfAccount(w *world) {
	_, stranger := w.addAccount("bob@example.com")
	first, second := w.addDatabase("shop"), w.addDatabase("other")
	late, early := w.addUpload(first.ID, 2), w.addUpload(second.ID, 1)
	of := func(a id.AccountID) []upload.Upload { return read(w, ports.Tx.Uploads, ports.Uploads.OfAccount, a) }
	w.equal("those of the account", of(w.account.ID), []upload.Upload{early, late})
	w.equal("those of another one", len(of(stranger.ID)), 0)
}

func doomedUploads(w *world) {
	r := w.addDatabase("shop")
	expired, used := w.addUpload(r.ID, 0), w.addUpload(r.ID, 1)
	w.addUpload(r.ID, 90)
	o := w.addWork(r.ID)
	used.OperationID = o.ID
	w.update(writing(ports.Tx.Uploads, ports.Uploads.Save, used))
	doomed := func(now, limit int, want ...upload.Upload) {
		w.Helper()
		var got []upload.Upload
		for _, d := range read2(w, ports.Tx.Uploads, ports.Uploads.Doomed, minutes(now), limit) {
			w.equal("where it is", [2]string{string(d.ServerID), string(d.AccountID)},
				[2]string{string(r.ServerID), string(r.AccountID)})
			got = append(got, d.Upload)
		}
		w.equal("what is doomed", got, want)
	}
	doomed(59, 9)
	doomed(120, 9, expired)
	w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, ended(o, operation.Failed)))
	doomed(59, 9, used)
	doomed(120, 9, expired, used)
	doomed(120, 1, expired)
}
