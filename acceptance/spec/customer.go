package spec

import (
	"encoding/json"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// Customer is somebody with an account and a full-access key, on the first API host. The verbs are steps that must go well;
// what may be refused is called on the client itself.
type Customer struct {
	Client
	Account Account
	Key     Key
	stage   *Stage
}

// Customer makes a customer with a new account.
func (s *Stage) Customer(plan string) *Customer {
	s.Helper()
	account := must(s.Operator.NewAccount(plan))(s)
	return s.WithKey(account)
}

// Owner makes a customer on plan pro who has one database.
func (s *Stage) Owner() (*Customer, Created) {
	s.Helper()
	c := s.Customer("pro")
	return c, c.Creates("orders")
}

// WithKey makes a customer of an account that is there, with a new key: of full access, or of the given databases only.
func (s *Stage) WithKey(a Account, databases ...id.DatabaseID) *Customer {
	s.Helper()
	key := must(s.Operator.NewKey(a, databases...))(s)
	c := &Customer{Account: a, Key: key, stage: s}
	c.Client = c.on(0)
	return c
}

// on is the customer's client of the nth API host.
func (c *Customer) on(n int) Client {
	client := c.stage.Hosts[n%len(c.stage.Hosts)](c.Key.Text)
	if c.stage.legacy {
		client.Roles = LegacyCalls{client.LegacyRoles}
	}
	return client
}

// Creates makes a database with a name of its own, of the model that the story is about.
func (c *Customer) Creates(word string) Created {
	c.stage.Helper()
	if c.stage.legacy {
		return c.OptsIn(c.CreatesSingle(word))
	}
	return c.CreatesAs(NewDatabase{Name: c.stage.Name(word), DisplayName: word})
}

// CreatesAs makes a database as asked for.
func (c *Customer) CreatesAs(n NewDatabase) Created {
	c.stage.Helper()
	return must(c.CreateDatabase(n))(c.stage)
}

// must is the result of a step that has to go well on a stage.
func must[T any](result T, err error) func(*Stage) T {
	return func(s *Stage) T {
		s.Helper()
		s.OK(err)
		return result
	}
}

// Sees returns a database.
func (c *Customer) Sees(of id.DatabaseID) wire.Database {
	c.stage.Helper()
	return must(c.Databases.Get(ctx, of))(c.stage)
}

// SeesAll returns the IDs of every database that the key shows.
func (c *Customer) SeesAll() (ids []id.DatabaseID) {
	c.stage.Helper()
	for _, d := range must(c.Databases.List().Page(ctx, apiclient.Page{}))(c.stage).Data {
		ids = append(ids, d.ID)
	}
	return ids
}

// Sets starts, stops or restarts a database.
func (c *Customer) Sets(of id.DatabaseID, action database.Event, want database.Status) {
	c.stage.Helper()
	status := must(c.SetLifecycle(of, action))(c.stage)
	c.stage.That(status == want, "%s left the database %s; want %s", action, status, want)
}

// BacksUp starts a backup.
func (c *Customer) BacksUp(of id.DatabaseID) wire.Operation {
	c.stage.Helper()
	return must(c.Backups.Start(ctx, of))(c.stage).Operation
}

// Follows waits for the end of an operation.
func (c *Customer) Follows(o wire.Operation) wire.Operation {
	c.stage.Helper()
	c.stage.Eventually(string(o.Type)+" "+string(o.ID)+" is final", func() (final bool) {
		o = must(c.Operations.Get(ctx, o.ID))(c.stage)
		return o.Status.Final()
	})
	return o
}

// FinishesBackup takes a backup and returns the name of its file.
func (c *Customer) FinishesBackup(of id.DatabaseID) backup.Filename {
	c.stage.Helper()
	return c.stage.fileOf(c.Follows(c.BacksUp(of)))
}

// fileOf is the name of the file that a backup has made.
func (s *Stage) fileOf(o wire.Operation) backup.Filename {
	s.Helper()
	s.That(o.Status == "succeeded", "the backup is %s: %+v", o.Status, o.Error)
	var r operation.BackupResult
	s.OK(json.Unmarshal(*o.Result, &r))
	return backup.Filename(r.Filename)
}

// ListsBackups returns every backup of a database.
func (c *Customer) ListsBackups(of id.DatabaseID) []wire.Backup {
	c.stage.Helper()
	return must(c.Backups.List(of).Page(ctx, apiclient.Page{}))(c.stage).Data
}

// ListsOperations returns every operation of a database.
func (c *Customer) ListsOperations(of id.DatabaseID) []wire.Operation {
	c.stage.Helper()
	return must(c.Operations.List(of).Page(ctx, apiclient.Page{}))(c.stage).Data
}

// Downloads returns a backup file.
func (c *Customer) Downloads(of id.DatabaseID, name backup.Filename) []byte {
	c.stage.Helper()
	return must(c.DownloadBackup(of, name))(c.stage)
}

// Allows lets a network connect.
func (c *Customer) Allows(of id.DatabaseID, cidr string) wire.AllowlistEntry {
	c.stage.Helper()
	return must(c.AddToAllowlist(of, cidr, ""))(c.stage)
}

// ReadsActivity returns the activity log of a database, newest first.
func (c *Customer) ReadsActivity(of id.DatabaseID) []wire.Activity {
	c.stage.Helper()
	return must(c.Activity.List(of).Page(ctx, apiclient.Page{}))(c.stage).Data
}
