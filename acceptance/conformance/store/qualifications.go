package store

import (
	"testing"

	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Qualifications is the suite of ports.Qualifications.
func Qualifications(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"the last trial of an extension on a server counts", lastTrialCounts},
		{"a trial needs its server", trialNeedsItsServer},
	})
}

func (w *world) trial(of extension.Name, on id.ServerID) extension.Qualification {
	return extension.Qualification{
		ServerID: on, Extension: of, Version: of.Version(16), ServerVersion: "16.14", Qualified: true, At: epoch,
	}
}

func lastTrialCounts(w *world) {
	other := w.addServer("other", 10)
	want := func(on id.ServerID, trials ...extension.Qualification) {
		w.Helper()
		w.equal("trials", read(w, ports.Tx.Qualifications, ports.Qualifications.Of, on), trials)
	}
	put := func(q extension.Qualification) {
		w.Helper()
		w.update(writing(ports.Tx.Qualifications, ports.Qualifications.Put, q))
	}
	want(w.server.ID)
	crypto, trgm, theirs := w.trial("pgcrypto", w.server.ID), w.trial("pg_trgm", w.server.ID), w.trial("pgcrypto", other.ID)
	put(crypto)
	put(trgm)
	put(theirs)
	want(w.server.ID, trgm, crypto)

	crypto.Version, crypto.ServerVersion, crypto.Qualified = "1.4", "16.15", false
	crypto.Message, crypto.At = "a function has another result", minutes(5)
	put(crypto)
	want(w.server.ID, trgm, crypto)
	want(other.ID, theirs)
}

func trialNeedsItsServer(w *world) {
	w.unknown("a server that does not exist",
		writing(ports.Tx.Qualifications, ports.Qualifications.Put, w.trial("citext", newID[id.ServerID]())))
}
