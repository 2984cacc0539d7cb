package spec

import "encoding/json"

// Customer is somebody with an account and a full-access key, on the first API host. The verbs are steps that must go well;
// what may be refused is called on the API itself.
type Customer struct {
	API
	Account Account
	Key     Key
	stage   *Stage
}

// Customer makes a customer with a new account.
func (s *Stage) Customer(plan string) *Customer {
	s.Helper()
	account, err := s.Operator.NewAccount(plan)
	s.OK(err)
	return s.WithKey(account)
}

// WithKey makes a customer of an account that is there, with a new key: of full access, or of the given databases only.
func (s *Stage) WithKey(a Account, databases ...string) *Customer {
	s.Helper()
	key, err := s.Operator.NewKey(a, databases...)
	s.OK(err)
	return &Customer{API: s.Hosts[0](key.Text), Account: a, Key: key, stage: s}
}

// Creates makes a managed database with a name of its own.
func (c *Customer) Creates(word string) Created {
	c.stage.Helper()
	return c.CreatesAs(NewDatabase{Name: c.stage.Name(word), DisplayName: word})
}

// CreatesAs makes a database as asked for.
func (c *Customer) CreatesAs(n NewDatabase) Created {
	c.stage.Helper()
	made, err := c.CreateDatabase(n)
	c.stage.OK(err)
	return made
}

// Sees returns a database.
func (c *Customer) Sees(id string) Database {
	c.stage.Helper()
	d, err := c.Database(id)
	c.stage.OK(err)
	return d
}

// SeesAll returns the IDs of every database that the key shows.
func (c *Customer) SeesAll() (ids []string) {
	c.stage.Helper()
	list, err := c.Databases(Page{})
	c.stage.OK(err)
	for _, d := range list.Data {
		ids = append(ids, d.ID)
	}
	return ids
}

// Sets starts, stops or restarts a database.
func (c *Customer) Sets(id, action, want string) {
	c.stage.Helper()
	status, err := c.SetLifecycle(id, action)
	c.stage.OK(err)
	c.stage.That(status == want, "%s left the database %s; want %s", action, status, want)
}

// BacksUp starts a backup.
func (c *Customer) BacksUp(id string) Operation {
	c.stage.Helper()
	o, err := c.StartBackup(id)
	c.stage.OK(err)
	return o
}

// Follows waits for the end of an operation.
func (c *Customer) Follows(o Operation) Operation {
	c.stage.Helper()
	c.stage.Eventually(o.Type+" "+o.ID+" is final", func() (final bool) {
		var err error
		o, err = c.Operation(o.ID)
		c.stage.OK(err)
		return o.Final()
	})
	return o
}

// FinishesBackup takes a backup and returns its result.
func (c *Customer) FinishesBackup(id string) BackupResult {
	c.stage.Helper()
	o := c.Follows(c.BacksUp(id))
	c.stage.That(o.Status == "succeeded", "the backup is %s: %+v", o.Status, o.Error)
	var r BackupResult
	c.stage.OK(json.Unmarshal(o.Result, &r))
	return r
}

// ListsBackups returns every backup of a database.
func (c *Customer) ListsBackups(id string) []Backup {
	c.stage.Helper()
	list, err := c.Backups(id, Page{})
	c.stage.OK(err)
	return list.Data
}

// Downloads returns a backup file.
func (c *Customer) Downloads(id, filename string) []byte {
	c.stage.Helper()
	file, err := c.DownloadBackup(id, filename)
	c.stage.OK(err)
	return file
}

// Allows lets a network connect.
func (c *Customer) Allows(id, cidr string) Entry {
	c.stage.Helper()
	e, err := c.AddToAllowlist(id, cidr, "")
	c.stage.OK(err)
	return e
}

// ReadsActivity returns the activity log of a database, newest first.
func (c *Customer) ReadsActivity(id string) []Activity {
	c.stage.Helper()
	list, err := c.Activity(id, Page{})
	c.stage.OK(err)
	return list.Data
}
