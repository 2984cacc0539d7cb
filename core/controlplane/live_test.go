package controlplane_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// open is a crowd whose process serves open pages, and what it looks at for these.
type open struct {
	*crowd
	store *looked
	shop  id.DatabaseID
}

// whileOpen runs a test in a bubble in which the process looks for changes.
func whileOpen(t *testing.T, test func(t *testing.T, o *open)) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		o := &open{crowd: c, store: &looked{Store: c.ports.Store}}
		c.ports.Store = o.store
		c.ControlPlane = c.process(quick())
		o.shop = c.made("shop").Record.ID
		go o.Live.Run(t.Context())
		test(t, o)
	})
}

// watch opens a page.
func (o *open) watch(c access.Caller, list ...id.DatabaseID) (changed <-chan struct{}, stop func()) {
	o.t.Helper()
	changed, stop, err := o.Live.Watch(o.ctx, c, list)
	ok(o.t, err)
	return changed, stop
}

func (o *open) changes(db id.DatabaseID, to database.Environment) {
	o.t.Helper()
	ok(o.t, o.Databases.SetEnvironment(o.ctx, o.reached(db), &to))
}

// saves changes the record of the shop, as another process does.
func (o *open) saves(change func(*database.Record)) error {
	return o.store.Update(o.ctx, func(ctx context.Context, tx ports.Tx) error {
		r, err := tx.Databases().Lock(ctx, o.shop)
		if err != nil {
			return err
		}
		change(&r)
		return tx.Databases().Save(ctx, r)
	})
}

// told is how often a page is told within a few seconds.
func told(changed <-chan struct{}) (times int) {
	end := time.After(5 * time.Second)
	for {
		select {
		case <-changed:
			times++
		case <-end:
			return times
		}
	}
}

// looked is a store that notes how many databases each look is about, and may be away.
type looked struct {
	ports.Store

	mu    sync.Mutex
	looks []int
	err   error
}

// View implements ports.Store.
func (l *looked) View(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	l.mu.Lock()
	err := l.err
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return l.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error { return fn(ctx, lookedTx{tx, l}) })
}

func (l *looked) away(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// during returns the looks within a time.
func (l *looked) during(d time.Duration) []int {
	synctest.Wait()
	l.mu.Lock()
	l.looks = nil
	l.mu.Unlock()
	time.Sleep(d)
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.looks)
}

type lookedTx struct {
	ports.Tx
	at *looked
}

func (l lookedTx) Databases() ports.Databases { return lookedDatabases{l.Tx.Databases(), l.at} }

type lookedDatabases struct {
	ports.Databases
	at *looked
}

func (l lookedDatabases) Pulses(ctx context.Context, list []id.DatabaseID) (map[id.DatabaseID]string, error) {
	l.at.mu.Lock()
	l.at.looks = append(l.at.looks, len(list))
	l.at.mu.Unlock()
	return l.Databases.Pulses(ctx, list)
}

func TestAnOpenPageIsToldOfChanges(t *testing.T) {
	whileOpen(t, func(t *testing.T, o *open) {
		other := o.made("other").Record.ID
		owner := o.person()
		changed, stop := o.watch(owner, o.shop)
		defer stop()
		equal(t, "told of nothing", told(changed), 0)
		o.changes(other, database.Staging)
		equal(t, "told of another database", told(changed), 0)
		o.changes(o.shop, database.Staging)
		equal(t, "told of a change", told(changed), 1)
		for _, to := range []database.Environment{database.Other, database.Production, database.Development} {
			o.changes(o.shop, to)
			time.Sleep(2 * time.Second)
		}
		equal(t, "told of three while nobody received", told(changed), 1)

		both, stopBoth := o.watch(owner, o.shop, other)
		defer stopBoth()
		o.changes(other, database.Other)
		equal(t, "told of one of two", told(both), 1)
		stop()
		stop()
		o.changes(o.shop, database.Other)
		equal(t, "told after its end", told(changed), 0)
		equal(t, "told of what another page was not", told(both), 1)
	})
}

// Each look is one statement, however many pages there are; without pages there is none.
func TestPagesShareALook(t *testing.T) {
	whileOpen(t, func(t *testing.T, o *open) {
		if looks := o.store.during(time.Minute); len(looks) > 0 {
			t.Errorf("without a page: %v", looks)
		}
		owner := o.person()
		var stops []func()
		for range 500 {
			_, stop := o.watch(owner, o.shop)
			stops = append(stops, stop)
		}
		if looks := o.store.during(3 * time.Second); !slices.Equal(looks, []int{1, 1, 1}) {
			t.Errorf("500 pages: %v", looks)
		}
		many := o.addDatabases(1001)
		_, stop := o.watch(owner, many...)
		stops = append(stops, stop)
		if looks := o.store.during(time.Second); !slices.Equal(looks, []int{1000, 2}) {
			t.Errorf("1,002 databases: %v", looks)
		}
		for _, stop := range stops {
			stop()
		}
		if looks := o.store.during(time.Minute); len(looks) > 0 {
			t.Errorf("after the last page: %v", looks)
		}
	})
}

// addDatabases stores so many records of the owner's.
func (o *open) addDatabases(n int) (list []id.DatabaseID) {
	o.t.Helper()
	ok(o.t, o.store.Update(o.ctx, func(ctx context.Context, tx ports.Tx) error {
		r, err := tx.Databases().Get(ctx, o.shop)
		list = nil
		for i := 0; i < n && err == nil; i++ {
			r.ID, r.Name = id.FromBytes[id.DatabaseID](o.ports.Entropy.UUID()), fmt.Sprintf("many-%d", i)
			list, err = append(list, r.ID), tx.Databases().Add(ctx, r)
		}
		return err
	}))
	return list
}

func TestAPageOutlivesAnOutage(t *testing.T) {
	whileOpen(t, func(t *testing.T, o *open) {
		owner := o.person()
		changed, stop := o.watch(owner, o.shop)
		defer stop()
		o.store.away(ports.ErrUnavailable)
		refusedInside(t, o.Live.StillSees(o.ctx, owner, []id.DatabaseID{o.shop}))
		equal(t, "told while the store is away", told(changed), 0)
		ok(t, o.saves(func(r *database.Record) { r.SizeBytes++ }))
		time.Sleep(time.Minute)
		o.store.away(nil)
		equal(t, "told when it is back", told(changed), 1)
		ok(t, o.Live.StillSees(o.ctx, owner, []id.DatabaseID{o.shop}))
	})
}

func TestWhoMayWatch(t *testing.T) {
	whileOpen(t, func(t *testing.T, o *open) {
		other := o.made("other").Record.ID
		guest, owner := o.guest(o.shop, account.Viewer), o.person()
		for what, c := range map[string]struct {
			by   access.Caller
			list []id.DatabaseID
			want fault.Code
		}{
			"a key":                 {o.caller, []id.DatabaseID{o.shop}, fault.Unauthorized},
			"nobody":                {access.Caller{}, nil, fault.Unauthorized},
			"a foreign database":    {guest, []id.DatabaseID{o.shop, other}, fault.DatabaseNotFound},
			"a missing database":    {owner, []id.DatabaseID{"00000000-0000-4000-8000-000000000000"}, fault.DatabaseNotFound},
			"what is no database":   {owner, []id.DatabaseID{"x"}, fault.DatabaseNotFound},
			"a page without any":    {owner, nil, ""},
			"the owner's databases": {owner, []id.DatabaseID{o.shop, other, o.shop}, ""},
			"the guest's":           {guest, []id.DatabaseID{o.shop}, ""},
		} {
			changed, stop, err := o.Live.Watch(o.ctx, c.by, c.list)
			if again := o.Live.StillSees(o.ctx, c.by, c.list); fmt.Sprint(err) != fmt.Sprint(again) {
				t.Errorf("%s: %v, and once more %v", what, err, again)
			}
			if c.want != "" {
				refused(t, err, c.want)
				continue
			}
			ok(t, err, what)
			equal(t, what+" is told of nothing", told(changed), 0)
			stop()
		}
	})
}

// What ends a page's right is told, and then it is gone.
func TestAPageThatIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(o *open, guest access.Caller) error
		want fault.Code
	}{
		"the member is removed": {func(o *open, _ access.Caller) error {
			in := o.reached(o.shop)
			return o.Members.Remove(o.ctx, in, must(o.Members.List(o.ctx, in))(o.t).Members[0].ID)
		}, fault.DatabaseNotFound},
		"the database is deleted": {func(o *open, _ access.Caller) error {
			return o.saves(func(r *database.Record) { r.Status = database.Deleting })
		}, fault.DatabaseNotFound},
		"the session ends": {func(o *open, guest access.Caller) error {
			o.changes(o.shop, database.Staging)
			return o.People.EndSession(o.ctx, guest, guest.Session.ID)
		}, fault.Unauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			whileOpen(t, func(t *testing.T, o *open) {
				guest := o.guest(o.shop, account.Viewer)
				changed, stop := o.watch(guest, o.shop)
				defer stop()
				ok(t, c.end(o, guest))
				equal(t, "told", told(changed), 1)
				refused(t, o.Live.StillSees(o.ctx, guest, []id.DatabaseID{o.shop}), c.want)
				_, _, err := o.Live.Watch(o.ctx, guest, []id.DatabaseID{o.shop})
				refused(t, err, c.want)
			})
		})
	}
}
