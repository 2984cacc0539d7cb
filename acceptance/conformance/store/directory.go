package store

import (
	"context"
	"maps"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Directory is the suite of ports.Directory.
func Directory(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"accounts are found by plan, address and name, in pages", accountsAreListed},
		{"what an account uses is added up", accountUseAddsUp},
		{"databases are found by what they belong to, in pages", allDatabasesAreListed},
		{"backups of all databases are listed, in pages", allBackupsAreListed},
		{"namespaces are found by account and name, in pages", allNamespacesAreListed},
		{"enrolments are counted by route", enrolmentsAreCounted},
	})
}

func accountsAreListed(w *world) {
	entry := func(u account.User, a account.Account) ports.AccountEntry {
		return ports.AccountEntry{Account: a, Email: u.Email, Name: u.Name}
	}
	list := []ports.AccountEntry{entry(w.user, w.account)}
	for _, email := range []string{"bob@example.com", "bobby@example.org", "ad_@example.com"} {
		list = append(list, entry(w.addAccount(email)))
	}
	of := func(f ports.AccountFilter) func(context.Context, ports.Tx, ports.Page) ([]ports.AccountEntry, error) {
		return paged(ports.Tx.Directory, ports.Directory.Accounts, f)
	}
	at := func(e ports.AccountEntry) ports.Position { return at(e.CreatedAt, e.ID) }
	ada, bob, bobby, ad := list[0], list[1], list[2], list[3]
	bob.Plan, bob.Overrides = account.Free, account.Overrides{BackupBytes: new(int64(7))}
	w.update(writing(ports.Tx.Accounts, ports.Accounts.Save, bob.Account))
	list[1] = bob
	pagesOf(w, list, at, 1, of(ports.AccountFilter{}))
	for what, c := range map[string]struct {
		filter ports.AccountFilter
		want   []ports.AccountEntry
	}{
		"the ID":                      {ports.AccountFilter{ID: bob.ID}, []ports.AccountEntry{bob}},
		"an unknown ID":               {ports.AccountFilter{ID: newID[id.AccountID]()}, nil},
		"the plan":                    {ports.AccountFilter{Plan: account.Free}, []ports.AccountEntry{bob}},
		"a part of the address":       {ports.AccountFilter{Email: "obby@"}, []ports.AccountEntry{bobby}},
		"a part that is no pattern":   {ports.AccountFilter{Email: "ad_"}, []ports.AccountEntry{ad}},
		"the whole address":           {ports.AccountFilter{Owner: "ada@example.com"}, []ports.AccountEntry{ada}},
		"an address in another case":  {ports.AccountFilter{Owner: "ADA@example.com"}, nil},
		"a part of the owner":         {ports.AccountFilter{Owner: "da@example.com"}, nil},
		"both, of different people":   {ports.AccountFilter{Plan: account.Free, Email: "ada@"}, nil},
		"the plan and a part, of one": {ports.AccountFilter{Plan: account.Business, Email: "bob"}, []ports.AccountEntry{bobby}},
	} {
		w.equal(what, len(onePage(w, ports.Page{}, of(c.filter))), len(c.want))
		pagesOf(w, c.want, at, 1, of(c.filter))
	}
	pagesOf(w, list, at, 1, of(ports.AccountFilter{Owner: "Ada"})) // the name of them all
	w.addAccountOf("mallory@example.com", "ada@example.com")
	pagesOf(w, []ports.AccountEntry{ada}, at, 1, of(ports.AccountFilter{Owner: "ada@example.com"}))
}

func accountUseAddsUp(w *world) {
	_, other := w.addAccount("bob@example.com")
	a := w.addDatabase("a-1", func(r *database.Record) { r.SizeBytes = 1 << 40 })
	w.addDatabase("b-1", func(r *database.Record) { r.SizeBytes = 1 })
	gone, _ := w.addDeleted("c-1", 1)
	recovering, _ := w.addDeleted("d-1", 1)
	w.addWork(recovering.ID, func(o *operation.Operation) { o.Kind = "recover" })
	w.addDatabase("e-1", func(r *database.Record) { r.AccountID, r.SizeBytes = other.ID, 5 })
	for i, db := range []id.DatabaseID{a.ID, a.ID, gone.ID} {
		w.addBackup(db, minutes(i), func(b *backup.Backup) { b.SizeBytes = 1 << 40 })
	}
	w.addBackup(gone.ID, minutes(4), func(b *backup.Backup) { b.Trigger = backup.Deletion }) // bound to the tombstone
	doomed := w.addBackup(a.ID, minutes(5))
	w.mark(a.ID, doomed.Filename, minutes(6))
	w.addKey(account.FullAccount, w.account)
	revoked := w.addKey(account.FullAccount, w.account)
	revoked.RevokedAt = new(minutes(1))
	w.update(writing(ports.Tx.Keys, ports.Keys.Revoke, revoked))
	got := read2(w, ports.Tx.Directory, ports.Directory.Accounts, ports.AccountFilter{ID: w.account.ID}, ports.Page{})
	w.equal("what the account uses", got, []ports.AccountEntry{{
		Account: w.account, Email: w.user.Email, Name: w.user.Name, Databases: 3, Deleted: 2, Bytes: 1<<40 + 1, InBackups: 3 << 40,
		Keys: 1,
	}})
}

func allDatabasesAreListed(w *world) {
	second := w.addServer("second", 100)
	bob, other := w.addAccount("bob@example.com")
	entry := func(r database.Record, email, server string, routes ...string) ports.DatabaseEntry {
		return ports.DatabaseEntry{Record: r, Email: email, Server: server, Enrolments: append([]string{}, routes...)}
	}
	shop := w.addDatabase("shop")
	elsewhere := w.addDatabase("shop", func(r *database.Record) {
		r.ServerID, r.CreatedAt, r.Status = second.ID, minutes(1), database.Deleted
		r.Host, r.Port = second.PublicHost, second.PublicPort
	})
	blog := w.addDatabase("blog", func(r *database.Record) {
		r.AccountID, r.CreatedAt, r.Status = other.ID, minutes(1), database.Stopped
	})
	for _, e := range []struct {
		db    id.DatabaseID
		route string
	}{{blog.ID, "restore"}, {blog.ID, "clone"}, {shop.ID, "clone"}} {
		w.update(writing2(ports.Tx.Switches, ports.Switches.Enroll, e.db, e.route))
	}
	w.addBackup(shop.ID, minutes(1))
	w.addBackup(shop.ID, minutes(2))
	one, two, three := entry(shop, w.user.Email, "first", "clone"), entry(elsewhere, w.user.Email, "second"),
		entry(blog, bob.Email, "first", "clone", "restore")
	one.InBackups = 2 << 40
	ended := []database.Status{database.Deleted, database.Stopped}
	at := func(e ports.DatabaseEntry) ports.Position { return at(e.CreatedAt, e.ID) }
	for what, c := range map[string]struct {
		filter ports.DatabaseFilter
		want   []ports.DatabaseEntry
	}{
		"all":                  {ports.DatabaseFilter{}, []ports.DatabaseEntry{one, two, three}},
		"the ID":               {ports.DatabaseFilter{ID: shop.ID}, []ports.DatabaseEntry{one}},
		"the account":          {ports.DatabaseFilter{AccountID: other.ID}, []ports.DatabaseEntry{three}},
		"the server":           {ports.DatabaseFilter{ServerID: second.ID}, []ports.DatabaseEntry{two}},
		"the name":             {ports.DatabaseFilter{Name: "shop"}, []ports.DatabaseEntry{one, two}},
		"a part of the name":   {ports.DatabaseFilter{Name: "sho"}, nil},
		"statuses":             {ports.DatabaseFilter{Statuses: ended}, []ports.DatabaseEntry{two, three}},
		"a route":              {ports.DatabaseFilter{Route: "restore"}, []ports.DatabaseEntry{three}},
		"any route":            {ports.DatabaseFilter{Route: rollout.All}, []ports.DatabaseEntry{one, three}},
		"an account's on none": {ports.DatabaseFilter{AccountID: other.ID, ServerID: second.ID}, nil},
	} {
		list := paged(ports.Tx.Directory, ports.Directory.Databases, c.filter)
		w.equal(what, len(onePage(w, ports.Page{}, list)), len(c.want))
		pagesOf(w, c.want, at, 1, list)
	}
}

func allBackupsAreListed(w *world) {
	_, other := w.addAccount("bob@example.com")
	shop := w.addDatabase("shop")
	blog := w.addDatabase("blog", func(r *database.Record) { r.AccountID, r.Status = other.ID, database.Stopped })
	of := func(r database.Record, email string, at int, change func(*backup.Backup)) ports.BackupEntry {
		return ports.BackupEntry{
			Backup: w.addBackup(r.ID, minutes(at), change), Database: r.Name, Status: r.Status, AccountID: r.AccountID, Email: email,
			ServerID: w.server.ID, Server: w.server.Name,
		}
	}
	verified := func(b *backup.Backup) { b.VerifiedAt = new(minutes(9)) }
	not := func(*backup.Backup) {}
	one, two := of(shop, w.user.Email, 1, verified), of(shop, w.user.Email, 2, not)
	three, four := of(blog, "bob@example.com", 2, not), of(blog, "bob@example.com", 3, verified)
	one.Last, four.Last = true, true
	doomed := w.addBackup(shop.ID, minutes(5))
	w.mark(shop.ID, doomed.Filename, minutes(6))
	at := func(e ports.BackupEntry) ports.Position { return at(e.CreatedAt, e.OperationID) }
	for what, c := range map[string]struct {
		filter ports.BackupFilter
		want   []ports.BackupEntry
	}{
		"all":                  {ports.BackupFilter{}, []ports.BackupEntry{one, two, three, four}},
		"the database":         {ports.BackupFilter{DatabaseID: shop.ID}, []ports.BackupEntry{one, two}},
		"the account":          {ports.BackupFilter{AccountID: other.ID}, []ports.BackupEntry{three, four}},
		"not verified":         {ports.BackupFilter{Unverified: true}, []ports.BackupEntry{two, three}},
		"those of the account": {ports.BackupFilter{AccountID: other.ID, Unverified: true}, []ports.BackupEntry{three}},
		"the wrong account":    {ports.BackupFilter{AccountID: other.ID, DatabaseID: shop.ID}, nil},
	} {
		list := paged(ports.Tx.Directory, ports.Directory.Backups, c.filter)
		w.equal(what, len(onePage(w, ports.Page{}, list)), len(c.want))
		pagesOf(w, c.want, at, -1, list)
	}
}

func allNamespacesAreListed(w *world) {
	bob, other := w.addAccount("bob@example.com")
	entry := func(of account.Account, email, name string, at int) ports.NamespaceEntry {
		n := account.Namespace{ID: newID[id.NamespaceID](), AccountID: of.ID, Name: name, CreatedAt: minutes(at)}
		w.update(writing(ports.Tx.Namespaces, ports.Namespaces.Add, n))
		return ports.NamespaceEntry{Namespace: n, Email: email}
	}
	one, two, three := entry(w.account, w.user.Email, "main", 1), entry(w.account, w.user.Email, "web", 1),
		entry(other, bob.Email, "main", 2)
	two.RevokedAt = new(minutes(3))
	w.update(writing(ports.Tx.Namespaces, ports.Namespaces.Revoke, two.Namespace))
	at := func(e ports.NamespaceEntry) ports.Position { return at(e.CreatedAt, e.ID) }
	for what, c := range map[string]struct {
		filter ports.NamespaceFilter
		want   []ports.NamespaceEntry
	}{
		"all":         {ports.NamespaceFilter{}, []ports.NamespaceEntry{one, two, three}},
		"the name":    {ports.NamespaceFilter{Name: "main"}, []ports.NamespaceEntry{one, three}},
		"the account": {ports.NamespaceFilter{AccountID: w.account.ID}, []ports.NamespaceEntry{one, two}},
		"both":        {ports.NamespaceFilter{AccountID: other.ID, Name: "main"}, []ports.NamespaceEntry{three}},
	} {
		list := paged(ports.Tx.Directory, ports.Directory.Namespaces, c.filter)
		w.equal(what, len(onePage(w, ports.Page{}, list)), len(c.want))
		pagesOf(w, c.want, at, 1, list)
	}
}

func enrolmentsAreCounted(w *world) {
	count := func(want map[string]int) {
		w.Helper()
		if got := read0(w, ports.Tx.Directory, ports.Directory.Enrolled); !maps.Equal(got, want) {
			w.Errorf("got %v, want %v", got, want)
		}
	}
	count(nil)
	a, b := w.addDatabase("a-1"), w.addDatabase("b-1")
	w.update(writing2(ports.Tx.Switches, ports.Switches.Enroll, a.ID, "clone"))
	w.update(writing2(ports.Tx.Switches, ports.Switches.Enroll, a.ID, "restore"))
	w.update(writing2(ports.Tx.Switches, ports.Switches.Enroll, b.ID, "clone"))
	count(map[string]int{"clone": 2, "restore": 1})
}
