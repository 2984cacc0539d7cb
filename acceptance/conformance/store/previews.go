package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/ports"
)

// Previews is the suite of ports.Previews.
func Previews(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a preview comes back as it was stored and saved", previewComesBack},
		{"a ref has one preview that is not deleted", refHasOne},
		{"a key reaches the previews of its namespace", namespaceReaches},
		{"leases end when their time is over", leasesLapse},
		{"expired previews are due, one of each account on a server", previewsAreDue},
		{"who has locked the server sees what others have begun to delete", oneEndsAtATime},
		{"living previews are listed by when they end, with what is done to them", previewsLive},
		{"a preview goes with its database", previewGoes},
	})
}

func (w *world) namespaceOf(of account.Account, name string) account.Namespace {
	w.Helper()
	n := account.Namespace{ID: newID[id.NamespaceID](), AccountID: of.ID, Name: name, CreatedAt: epoch}
	w.update(writing(ports.Tx.Namespaces, ports.Namespaces.Add, n))
	return n
}

func (w *world) previewOf(db id.DatabaseID, n account.Namespace, ref string, use int) preview.Preview {
	return preview.New(db, n.ID, ref, use, preview.Choices{TTLHours: 1, ScheduledBackup: database.NoSchedule}, epoch)
}

// addPreview makes a database that is a preview, whose lease ends at minute 60.
func (w *world) addPreview(
	name string, n account.Namespace, ref string, use int, change ...func(*preview.Preview),
) (database.Record, preview.Preview) {
	w.Helper()
	r := w.addDatabase(name, func(r *database.Record) { r.AccountID = n.AccountID })
	p := changed(w.previewOf(r.ID, n, ref, use), change)
	if use%2 == 0 {
		p.SourceID, p.SourceAt = newID[id.DatabaseID](), new(epoch)
	}
	w.update(writing(ports.Tx.Previews, ports.Previews.Add, p))
	p.Schedule = r.Schedule
	return lock(w, r.ID), p
}

func lockPreview(w *world, db id.DatabaseID) preview.Preview {
	w.Helper()
	return readLocked(w, ports.Tx.Previews, ports.Previews.Lock, db)
}

func (w *world) save(p preview.Preview) {
	w.Helper()
	w.update(writing(ports.Tx.Previews, ports.Previews.Save, p))
}

func previewComesBack(w *world) {
	n := w.addNamespace("web")
	plain := w.addDatabase("shop")
	r, p := w.addPreview("one", n, "main", 7)
	w.equal("the preview", lockPreview(w, r.ID), p)
	w.equal("what the record says of it", r.NamespaceID, n.ID)
	w.missing("the preview of a plain database", func(ctx context.Context, tx ports.Tx) error {
		return w.Store.Update(ctx, reading(ports.Tx.Previews, ports.Previews.Lock, plain.ID))
	})
	r.Schedule = database.Daily
	w.update(writing(ports.Tx.Databases, ports.Databases.Save, r))
	p.Schedule = database.Daily
	for _, l := range preview.Leases {
		p.Lease, p.Generation, p.ExpiresAt, p.Failures, p.EndAt, p.EndingSince = l, 1<<40, minutes(9), 3, nil, nil
		at := minutes(5)
		switch l {
		case preview.Expired:
			p.EndAt = &at
		case preview.Deleting:
			p.EndingSince = &at
		}
		w.save(p)
		w.equal("as "+string(l), lockPreview(w, r.ID), p)
	}
	changed := p
	changed.NamespaceID, changed.Ref, changed.Use, changed.TTLHours = newID[id.NamespaceID](), "other", 9, 9
	w.save(changed)
	w.equal("what cannot change", lockPreview(w, r.ID), p)
	p.DatabaseID = plain.ID
	w.unknown("saving what is none", writing(ports.Tx.Previews, ports.Previews.Save, p))
	w.unknown("a preview of no database",
		writing(ports.Tx.Previews, ports.Previews.Add, w.previewOf(newID[id.DatabaseID](), n, "none", 1)))
}

func refHasOne(w *world) {
	n, other := w.addNamespace("web"), w.addNamespace("app")
	ofRef := func(ns account.Namespace, ref string) (live id.DatabaseID, used int) {
		w.Helper()
		w.view(func(ctx context.Context, tx ports.Tx) error {
			p, n, err := tx.Previews().OfRef(ctx, ns.ID, ref)
			if used = n; p != nil {
				live = p.DatabaseID
				w.equal("the live one", *p, lockPreview(w, live))
			}
			return err
		})
		return live, used
	}
	want := func(what string, ns account.Namespace, ref string, live id.DatabaseID, used int) {
		w.Helper()
		gotLive, gotUsed := ofRef(ns, ref)
		w.equal(what, []any{gotLive, gotUsed}, []any{live, used})
	}
	want("no preview", n, "main", "", 0)
	first, p := w.addPreview("one", n, "main", 1)
	elsewhere, _ := w.addPreview("two", other, "main", 1)
	case2, _ := w.addPreview("three", n, "Main", 1)
	want("the first", n, "main", first.ID, 1)
	want("another namespace's", other, "main", elsewhere.ID, 1)
	want("another ref's", n, "Main", case2.ID, 1)

	second := w.addDatabase("four")
	again := w.previewOf(second.ID, n, "main", 2)
	taken := fault.New(fault.PreviewConflict, "the ref has another preview")
	w.refused("a second one", taken, writing(ports.Tx.Previews, ports.Previews.Add, again))
	for _, l := range []preview.Lease{preview.Deleting, preview.Recovering} {
		p.Lease = l
		w.save(p)
		w.refused("a second one beside "+string(l), taken, writing(ports.Tx.Previews, ports.Previews.Add, again))
	}
	p.Lease = preview.Deleted
	w.save(p)
	want("after its deletion", n, "main", "", 1)
	w.update(writing(ports.Tx.Previews, ports.Previews.Add, again))
	want("the second", n, "main", second.ID, 2)
	p.Lease = preview.Recovering
	w.refused("recovering the first", taken, writing(ports.Tx.Previews, ports.Previews.Save, p))
}

func namespaceReaches(w *world) {
	_, theirs := w.addAccount("bob@example.com")
	n, other, foreign := w.addNamespace("web"), w.addNamespace("app"), w.namespaceOf(theirs, "web")
	plain := w.addDatabase("shop")
	r, p := w.addPreview("one", n, "main", 1)
	sibling, _ := w.addPreview("two", other, "main", 1)
	key := w.addCIKey(n, 0, stored)
	w.equal("the preview", read2(w, ports.Tx.Previews, ports.Previews.Reach, key.ID, r.ID), p)
	viewer := func(k account.Key) database.Viewer {
		return database.Viewer{AccountID: k.AccountID, UserID: k.UserID, KeyID: k.ID, Scope: k.Scope, NamespaceID: k.NamespaceID}
	}
	every := []database.Record{plain, r, sibling}
	w.wantSeen("the CI key", viewer(key), every, seen{r.ID: account.Owner})
	full := w.addKey(account.FullAccount, w.account)
	w.wantSeen("the full-account key", viewer(full), every,
		seen{plain.ID: account.Owner, r.ID: account.Owner, sibling.ID: account.Owner})

	p.Lease = preview.Deleted
	w.save(p)
	w.equal("the deleted preview", read2(w, ports.Tx.Previews, ports.Previews.Reach, key.ID, r.ID), p)
	for what, one := range map[string]struct {
		key id.KeyID
		db  id.DatabaseID
	}{
		"of a sibling":           {key.ID, sibling.ID},
		"of a plain database":    {key.ID, plain.ID},
		"of nothing":             {key.ID, newID[id.DatabaseID]()},
		"for a sibling":          {w.addCIKey(other, 0, stored).ID, r.ID},
		"for a stranger":         {w.addCIKey(foreign, 0, stored).ID, r.ID},
		"for a full-account key": {full.ID, r.ID},
		"for an unknown key":     {"00000000", r.ID},
	} {
		w.missing("the preview "+what, reading2(ports.Tx.Previews, ports.Previews.Reach, one.key, one.db))
	}
	at := minutes(1)
	key.RevokedAt = &at
	w.update(writing(ports.Tx.Keys, ports.Keys.Revoke, key))
	w.missing("the preview for a revoked key", reading2(ports.Tx.Previews, ports.Previews.Reach, key.ID, r.ID))
	w.wantSeen("the revoked key", viewer(key), every, seen{})
}

func leasesLapse(w *world) {
	n := w.addNamespace("web")
	lapse := func(minute, limit, want int) {
		w.Helper()
		w.equal("whether any is over", read(w, ports.Tx.Previews, ports.Previews.Over, minutes(minute)), want > 0)
		w.equal("how many leases end", found(w.update, func(ctx context.Context, tx ports.Tx) (int, error) {
			return tx.Previews().Lapse(ctx, minutes(minute), limit)
		}), want)
	}
	first, _ := w.addPreview("one", n, "one", 1)
	second, _ := w.addPreview("two", n, "two", 1, func(p *preview.Preview) { p.ExpiresAt = minutes(61) })
	deleting, _ := w.addPreview("three", n, "three", 1, func(p *preview.Preview) { p.Lease = preview.Deleting })
	lapse(59, 9, 0)
	lapse(99, 1, 1)
	w.equal("the second", lockPreview(w, second.ID).Lease, preview.Active)
	p := lockPreview(w, first.ID)
	w.equal("the first", []any{p.Lease, *p.EndAt}, []any{preview.Expired, minutes(60)})
	lapse(61, 9, 1)
	lapse(99, 9, 0)
	w.equal("one that is being deleted", lockPreview(w, deleting.ID).Lease, preview.Deleting)
}

func previewsAreDue(w *world) {
	_, theirs := w.addAccount("bob@example.com")
	n, foreign := w.addNamespace("web"), w.namespaceOf(theirs, "web")
	expired := func(minute int) func(*preview.Preview) {
		return func(p *preview.Preview) {
			at := minutes(minute)
			p.Lease, p.EndAt = preview.Expired, &at
		}
	}
	late, _ := w.addPreview("one", n, "one", 1, expired(3))
	early, _ := w.addPreview("two", n, "two", 1, expired(2))
	bobs, _ := w.addPreview("three", foreign, "three", 1, expired(4))
	w.addPreview("four", n, "four", 1)
	due := func(minute int, since time.Time, want ...database.Record) {
		w.Helper()
		got, wanted := map[id.DatabaseID]id.AccountID{}, map[id.DatabaseID]id.AccountID{}
		for _, d := range read2(w, ports.Tx.Previews, ports.Previews.Due, minutes(minute), since) {
			got[d.DatabaseID] = d.AccountID
			w.equal("its server", d.ServerID, w.server.ID)
			w.equal("the preview", d.Preview, lockPreview(w, d.DatabaseID))
		}
		for _, r := range want {
			wanted[r.ID] = r.AccountID
		}
		w.equal("what is due", got, wanted)
	}
	due(1, epoch)
	due(2, epoch, early)
	due(9, epoch, early, bobs)
	o := w.addWork(early.ID)
	due(9, epoch, late, bobs)
	w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, ended(o, operation.Failed)))
	at := minutes(5)
	ending := lockPreview(w, bobs.ID)
	ending.Lease, ending.EndAt, ending.EndingSince = preview.Deleting, nil, &at
	w.save(ending)
	due(9, minutes(4))
	due(9, minutes(5), early)
	w.equal("what is being deleted", w.ending(), []ports.EndingPreview{
		{DatabaseID: bobs.ID, ServerID: w.server.ID, AccountID: foreign.AccountID, Since: at},
	})
	ending.EndingSince = nil
	w.save(ending)
	due(9, minutes(4), early)
	w.equal("what the service is deleting", len(w.ending()), 0)
	w.suspend(w.account)
	due(9, minutes(4))
}

func (w *world) ending() []ports.EndingPreview {
	w.Helper()
	return read0(w, ports.Tx.Previews, ports.Previews.Ending)
}

// Many hosts begin to delete a preview each, at the same moment. Who has locked the server sees what the others have begun.
func oneEndsAtATime(w *world) {
	const many = 6
	n := w.addNamespace("web")
	rows := make([]preview.Preview, many)
	for i := range rows {
		_, rows[i] = w.addPreview(fmt.Sprint("p", i), n, fmt.Sprint("p", i), 1)
	}
	since := minutes(5)
	w.race(many, nil, func(i int) transaction {
		return func(ctx context.Context, tx ports.Tx) error {
			if _, err := tx.Databases().Lock(ctx, rows[i].DatabaseID); err != nil {
				return err
			}
			if err := tx.Servers().Lock(ctx, w.server.ID); err != nil {
				return err
			}
			if ending, err := tx.Previews().Ending(ctx); err != nil || len(ending) > 0 {
				return err
			}
			time.Sleep(20 * time.Millisecond) // the others wait for as long as it takes
			p := rows[i]
			p.Lease, p.EndingSince = preview.Deleting, &since
			return tx.Previews().Save(ctx, p)
		}
	})
	w.equal("how many are being deleted", len(w.ending()), 1)
}

func previewsLive(w *world) {
	_, theirs := w.addAccount("bob@example.com")
	n, other := w.addNamespace("web"), w.addNamespace("app")
	ends := func(minute int, l preview.Lease) func(*preview.Preview) {
		return func(p *preview.Preview) { p.ExpiresAt, p.Lease = minutes(minute), l }
	}
	living := func(name string, n account.Namespace, minute int, l preview.Lease) ports.LivingPreview {
		r, p := w.addPreview(name, n, name, 1, ends(minute, l))
		return ports.LivingPreview{Preview: p, Name: r.Name, Status: r.Status}
	}
	own := []ports.LivingPreview{
		living("one", n, 70, preview.Active), living("two", n, 61, preview.Deleting), living("three", n, 61, preview.Recovering),
	}
	o := w.addWork(own[0].DatabaseID)
	own[0].OperationID, own[0].Kind = o.ID, o.Kind
	w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, ended(w.addWork(own[1].DatabaseID), operation.Failed)))
	elsewhere := living("four", other, 65, preview.Active)
	living("gone", n, 61, preview.Deleted)
	living("bobs", w.namespaceOf(theirs, "web"), 61, preview.Active)
	position := func(l ports.LivingPreview) ports.Position { return at(l.ExpiresAt, l.DatabaseID) }
	list := func(of id.NamespaceID) func(context.Context, ports.Tx, ports.Page) ([]ports.LivingPreview, error) {
		return paged(ports.Tx.Previews, ports.Previews.Living, ports.PreviewFilter{AccountID: w.account.ID, NamespaceID: of})
	}
	pagesOf(w, own, position, 1, list(n.ID))
	pagesOf(w, append(own, elsewhere), position, 1, list(""))
	pagesOf(w, nil, position, 1, list(newID[id.NamespaceID]()))
}

func previewGoes(w *world) {
	n := w.addNamespace("web")
	r, _ := w.addPreview("one", n, "main", 1)
	w.update(writing(ports.Tx.Databases, ports.Databases.Remove, r.ID))
	w.addPreview("one", n, "main", 1)
}
