package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/retention"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/usage"
	"github.com/pgherd/pgherd/ports"
)

// Usage is the suite of ports.Usage.
func Usage(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"servers with databases are listed with what was taken", usageServersAreListed},
		{"of two who take the same of an agent, one adds it", oneTakesIt},
		{"what is known of databases is found on their server", holdingsAreFound},
		{"parts of an hour and of a month are added", partsAreAdded},
		{"samples are those of a period", samplesOfPeriod},
		{"the bill of a month outlives its databases, in pages", linesOfAccount},
		{"a bill goes with the last samples of its month", linesGo},
	})
}

func usageServersAreListed(w *world) {
	empty := w.addServer("second", 1)
	servers := func() []ports.UsageServer { return read0(w, ports.Tx.Usage, ports.Usage.Servers) }
	w.equal("without a database", len(servers()), 0)
	w.addDeleted("shop", 1)
	want := ports.UsageServer{Server: w.server, Taken: usage.Taken{ServerID: w.server.ID}}
	w.equal("with a deleted one", servers(), []ports.UsageServer{want})

	want.Taken = usage.Taken{ServerID: w.server.ID, Position: "agent.7", Until: minutes(7), AskedAt: minutes(8)}
	w.unknown("what nobody has locked", writing(ports.Tx.Usage, ports.Usage.SetTaken, want.Taken))
	w.equal("nothing", readLocked(w, ports.Tx.Usage, ports.Usage.LockTaken, w.server.ID), usage.Taken{ServerID: w.server.ID})
	w.update(writing(ports.Tx.Usage, ports.Usage.SetTaken, want.Taken))
	w.equal("something", readLocked(w, ports.Tx.Usage, ports.Usage.LockTaken, w.server.ID), want.Taken)
	w.equal("listed", servers(), []ports.UsageServer{want})
	w.unknown("an unknown server", reading(ports.Tx.Usage, ports.Usage.LockTaken, newID[id.ServerID]()))

	readLocked(w, ports.Tx.Usage, ports.Usage.LockTaken, empty.ID)
	w.update(writing(ports.Tx.Servers, ports.Servers.Remove, empty.ID))
	w.equal("servers", read0(w, ports.Tx.Servers, ports.Servers.List), []server.Server{w.server})
}

var errTaken = errors.New("another has taken it")

func oneTakesIt(w *world) {
	db := w.addDatabase("shop").ID
	won := w.race(4, errTaken, func(int) transaction {
		return func(ctx context.Context, tx ports.Tx) error {
			t, err := tx.Usage().LockTaken(ctx, w.server.ID)
			if err == nil && t.Position != "" {
				err = errTaken
			}
			if err != nil {
				return err
			}
			t.Position = "agent.1"
			return errors.Join(tx.Usage().Add(ctx, []usage.Sample{sampleOf(db, 0, 60)}, nil), tx.Usage().SetTaken(ctx, t))
		}
	})
	w.equal("who took it", won, 1)
	w.equal("samples", w.samples(db, 0, 1), []usage.Sample{sampleOf(db, 0, 60)})
}

func holdingsAreFound(w *world) {
	shop := w.addDatabase("shop", func(r *database.Record) { r.SizeBytes, r.ConnectionCap = 1<<40, 60 })
	gone, _ := w.addDeleted("gone", 1)
	w.addDatabase("other")
	for i, bytes := range []int64{1 << 40, 2, 4} {
		w.addBackup(shop.ID, minutes(i), func(b *backup.Backup) { b.SizeBytes = bytes })
	}
	w.addBackup(gone.ID, minutes(1), func(b *backup.Backup) { b.Trigger = backup.Deletion })
	of := func(server id.ServerID, list ...id.DatabaseID) []usage.Holding {
		return read2(w, ports.Tx.Usage, ports.Usage.Holdings, server, list)
	}
	want := []usage.Holding{
		{DatabaseID: shop.ID, AccountID: w.account.ID, Name: "shop", Bytes: 1 << 40, BackupBytes: 1<<40 + 6, ConnectionCap: 60},
		{DatabaseID: gone.ID, AccountID: w.account.ID, Name: "gone", ConnectionCap: gone.ConnectionCap},
	}
	slices.SortFunc(want, func(a, b usage.Holding) int { return cmp.Compare(a.DatabaseID, b.DatabaseID) })
	w.equal("of the server", of(w.server.ID, gone.ID, newID[id.DatabaseID](), shop.ID), want)
	w.equal("of another", len(of(newID[id.ServerID](), shop.ID)), 0)
	w.equal("of nothing", len(of(w.server.ID)), 0)
}

// hourOf counts hours from the epoch's.
func hourOf(n int) time.Time { return epoch.Truncate(time.Hour).Add(time.Duration(n) * time.Hour) }

// sampleOf is one of an hour, in which a database was seen for so many seconds.
func sampleOf(db id.DatabaseID, hour int, seconds int64) usage.Sample {
	s := usage.Sample{DatabaseID: db, Hour: hourOf(hour), Bytes: 10 << 40, BackupBytes: 7, ConnectionCap: 60}
	s.Activity = usage.Activity{
		SeenMs: seconds * 1000, ActiveMs: 1 << 40, WaitingMs: 3, ActivePeak: 4, WaitingPeak: 5, Queries: 6, WaitUs: 1 << 50,
	}
	return s
}

func lineOf(db id.DatabaseID, of id.AccountID, month time.Time, name string) usage.Line {
	return usage.Line{
		Month: month, DatabaseID: db, AccountID: of, Name: name,
		Sums: usage.Sums{SeenMs: 1, ActiveMs: 2, ByteHours: 1 << 50, BackupByteHours: 4},
	}
}

func (w *world) adds(samples []usage.Sample, lines ...usage.Line) {
	w.Helper()
	w.update(writing2(ports.Tx.Usage, ports.Usage.Add, samples, lines))
}

// samples are those of a database from one hour to another.
func (w *world) samples(db id.DatabaseID, from, to int) []usage.Sample {
	w.Helper()
	return read2(w, ports.Tx.Usage, ports.Usage.Samples, []id.DatabaseID{db}, usage.Period{From: hourOf(from), To: hourOf(to)})
}

// partsAreAdded compares the rules of the store with those of the core.
func partsAreAdded(w *world) {
	one, other := newID[id.DatabaseID](), newID[id.DatabaseID]()
	w.adds(nil)
	first, second := sampleOf(one, 0, 600), sampleOf(one, 0, 1001)
	second.Bytes, second.BackupBytes, second.ConnectionCap, second.ActivePeak, second.WaitingPeak = 1<<50-1, 0, 20, 9, 1
	unseen := sampleOf(one, 1, 0)
	unseen2 := unseen
	unseen2.Bytes = 3
	w.adds([]usage.Sample{first, unseen, sampleOf(other, 0, 60)})
	w.adds([]usage.Sample{second, unseen2})
	w.equal("the hours", w.samples(one, 0, 2), []usage.Sample{first.Plus(second), unseen.Plus(unseen2)})
	w.equal("another's", w.samples(other, 0, 2), []usage.Sample{sampleOf(other, 0, 60)})

	month := usage.MonthOf(epoch)
	w.adds(nil, lineOf(one, w.account.ID, month, "shop"))
	w.adds(nil, lineOf(one, w.account.ID, month, "store"))
	want := lineOf(one, w.account.ID, month, "store")
	want.Sums = want.Plus(want.Sums)
	w.equal("the month", onePage(w, ports.Page{}, w.lines(month)), []usage.Line{want})
}

func samplesOfPeriod(w *world) {
	db := newID[id.DatabaseID]()
	all := []usage.Sample{sampleOf(db, 0, 60), sampleOf(db, 1, 60), sampleOf(db, 5, 60)}
	w.adds(all)
	for what, c := range map[string]struct {
		from, to time.Time
		want     []usage.Sample
	}{
		"all":                             {hourOf(0), hourOf(6), all},
		"without what begins at its end":  {hourOf(0), hourOf(5), all[:2]},
		"with the hour that it begins in": {hourOf(1).Add(time.Minute), hourOf(5).Add(time.Microsecond), all[1:]},
		"where nothing was seen":          {hourOf(2), hourOf(5), nil},
	} {
		in := usage.Period{From: c.from, To: c.to}
		w.equal(what, read2(w, ports.Tx.Usage, ports.Usage.Samples, []id.DatabaseID{db}, in), c.want)
	}
	other := sampleOf(newID[id.DatabaseID](), 1, 60)
	w.adds([]usage.Sample{other, sampleOf(newID[id.DatabaseID](), 1, 60)})
	want := append(slices.Clone(all), other)
	slices.SortFunc(want, func(a, b usage.Sample) int {
		return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(a.DatabaseID, b.DatabaseID))
	})
	in := usage.Period{From: hourOf(0), To: hourOf(6)}
	w.equal("of two databases", read2(w, ports.Tx.Usage, ports.Usage.Samples, []id.DatabaseID{other.DatabaseID, db}, in), want)
	w.equal("of none", len(read2(w, ports.Tx.Usage, ports.Usage.Samples, []id.DatabaseID{}, in)), 0)
}

// lines are those of the world's account in a month.
func (w *world) lines(month time.Time) func(context.Context, ports.Tx, ports.Page) ([]usage.Line, error) {
	return paged(ports.Tx.Usage, ports.Usage.Lines, ports.UsageFilter{Month: month, AccountID: w.account.ID})
}

func linesOfAccount(w *world) {
	bob, other := w.addAccount("bob@example.com")
	month := usage.MonthOf(epoch)
	next := month.AddDate(0, 1, 0)
	var own []usage.Line
	for range 4 {
		own = append(own, lineOf(newID[id.DatabaseID](), w.account.ID, month, "gone"))
	}
	later, others := lineOf(own[0].DatabaseID, w.account.ID, next, "shop"), lineOf(newID[id.DatabaseID](), other.ID, month, "blog")
	w.adds(nil, append(slices.Clone(own), later, others)...)
	position := func(l usage.Line) ports.Position { return at(l.Month, l.DatabaseID) }
	pagesOf(w, own, position, 1, w.lines(month))
	pagesOf(w, []usage.Line{later}, position, 1, w.lines(next))
	bound := w.addDatabase("bound").ID
	key := w.addKey(account.SelectedDatabases, w.account, bound)
	ofKey := ports.UsageFilter{Month: next, AccountID: w.account.ID, KeyID: key.ID}
	listOf := func(of ports.UsageFilter) []usage.Line {
		return onePage(w, ports.Page{}, paged(ports.Tx.Usage, ports.Usage.Lines, of))
	}
	w.equal("of what a key is bound to", len(listOf(ofKey)), 0)
	kept := lineOf(bound, w.account.ID, next, "bound")
	w.adds(nil, kept)
	w.equal("once it has a line", listOf(ofKey), []usage.Line{kept})
	sum := func(of ports.UsageFilter) usage.Sums { return read(w, ports.Tx.Usage, ports.Usage.Sum, of) }
	w.equal("the sum", sum(ports.UsageFilter{Month: month, AccountID: w.account.ID}),
		usage.Sums{SeenMs: 4, ActiveMs: 8, ByteHours: 4 << 50, BackupByteHours: 16})
	w.equal("of nothing", sum(ports.UsageFilter{Month: next, AccountID: other.ID}), usage.Sums{})
	w.equal("of a key", sum(ofKey), kept.Sums)

	var all []ports.UsageEntry
	for _, l := range own {
		all = append(all, ports.UsageEntry{Line: l, Email: w.user.Email})
	}
	all = append(all, ports.UsageEntry{Line: others, Email: bob.Email})
	entryAt := func(e ports.UsageEntry) ports.Position { return position(e.Line) }
	listed := func(of ports.UsageFilter) func(context.Context, ports.Tx, ports.Page) ([]ports.UsageEntry, error) {
		return paged(ports.Tx.Directory, ports.Directory.Usage, of)
	}
	pagesOf(w, all, entryAt, 1, listed(ports.UsageFilter{Month: month}))
	pagesOf(w, nil, entryAt, 1, listed(ports.UsageFilter{Month: month.AddDate(0, -1, 0)}))
	w.equal("of one account", onePage(w, ports.Page{}, listed(ports.UsageFilter{Month: month, AccountID: other.ID})),
		[]ports.UsageEntry{{Line: others, Email: bob.Email}})
}

func linesGo(w *world) {
	one, other := newID[id.DatabaseID](), newID[id.DatabaseID]()
	month := usage.MonthOf(epoch) // which the epoch is five days into
	forget := func(before time.Time, limit int) ports.Forgotten {
		return found(w.update, func(ctx context.Context, tx ports.Tx) (ports.Forgotten, error) {
			return tx.Retention().Forget(ctx, retention.Usage, before, nil, limit)
		})
	}
	// Deletion is bounded however many hours a database has.
	w.adds([]usage.Sample{sampleOf(one, 0, 1), sampleOf(one, 1, 1), sampleOf(one, 2, 1), sampleOf(other, 1, 1)},
		lineOf(one, w.account.ID, month, "shop"), lineOf(one, w.account.ID, month.AddDate(0, 1, 0), "shop"))
	w.equal("one of them", forget(hourOf(2), 1).Gone, 1)
	w.equal("the hours that are left", w.samples(one, 0, 3), []usage.Sample{sampleOf(one, 1, 1), sampleOf(one, 2, 1)})
	w.equal("the others", forget(hourOf(2), 10).Gone, 2)
	w.equal("the hour that is left", w.samples(one, 0, 3), []usage.Sample{sampleOf(one, 2, 1)})
	w.equal("lines", len(onePage(w, ports.Page{}, w.lines(month))), 1)
	w.equal("nothing", forget(month.Add(usage.Longest), 10).Gone, 1)
	w.equal("lines until the month is over", len(onePage(w, ports.Page{}, w.lines(month))), 1)
	forget(month.Add(usage.Longest+time.Second), 10)
	w.equal("lines after that", len(onePage(w, ports.Page{}, w.lines(month))), 0)
	w.equal("lines of the next month", len(onePage(w, ports.Page{}, w.lines(month.AddDate(0, 1, 0)))), 1)
}
