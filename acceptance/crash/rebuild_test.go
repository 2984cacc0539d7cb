package crash_test

import (
	"database/sql"
	"errors"
	"iter"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
)

// loseMetadata stops the hosts and drops the metadata database. In its place there is a new one, without even the schema.
func (w *world) loseMetadata(t *testing.T) {
	t.Helper()
	noError(t, w.api.Stop(soon(t)))
	noError(t, w.batch.Stop(soon(t)))
	noError(t, w.meta.Close())
	name := pq.QuoteIdentifier(strings.TrimPrefix(must(url.Parse(w.MetadataURL()))(t).Path, "/"))
	admin := stacktest.Open(t, w.Metadata.URL("postgres"))
	for _, s := range []string{"DROP DATABASE " + name + " WITH (FORCE)", "CREATE DATABASE " + name} {
		must(admin.ExecContext(soon(t), s))(t)
	}
	w.meta = stacktest.Open(t, w.MetadataURL())
}

// rebuild makes the metadata anew from what is at a source.
func (w *world) rebuild(t *testing.T, source ...string) map[string]any {
	t.Helper()
	return must(w.Admin(soon(t), append([]string{"installation", "rebuild"}, source...)...))(t)
}

// startHosts starts them again.
func (w *world) startHosts(t *testing.T) {
	t.Helper()
	noError(t, w.api.Restart(soon(t), ""))
	noError(t, w.batch.Restart(soon(t), ""))
}

// fromAgent is the source of snapshots that the stack's agent is.
func (w *world) fromAgent() []string {
	return []string{"--agent-url", w.AgentURL(), "--agent-secret-file", w.AgentSecretFile(), "--agent-ca-file", w.CAFile()}
}

// customersOf is what an account has and its people know, to be found again.
type customersOf struct {
	w               *world
	owner, member   *user
	revoked         string // a key
	db              wire.CreatedDatabase
	role            wire.RevealedRole
	webhook         id.WebhookID
	backup          backup.Filename
	waiting         id.OperationID // a backup that was queued
	rowsOfTheBackup int
}

func newCustomers(t *testing.T, w *world) *customersOf {
	t.Helper()
	c := &customersOf{w: w, owner: w.newUser(t, 9), member: w.newUser(t, 1), rowsOfTheBackup: 7}
	api := c.owner.at(w.api)
	c.db = c.owner.create(t, w.api, newName("lost"))
	must(w.Admin(soon(t), "enroll", "--database", string(c.db.ID), "--route", "all"))(t)
	made := must(api.Roles.Create(soon(t), c.db.ID, wire.CreateRole{
		DisplayName: "reports", AccessProfile: role.ReadOnly, ConnectionLimit: 2,
	}))(t)
	c.role = must(api.Roles.Reveal(soon(t), c.db.ID, made.RoleID))(t)
	must(api.Members.Add(soon(t), c.db.ID, wire.AddMember{Email: c.member.Email, Role: account.Developer}))(t)
	c.webhook = must(api.Webhooks.Create(soon(t), wire.CreateWebhook{URL: "https://1.1.1.1/pg"}))(t).ID
	noError(t, api.Webhooks.Disable(soon(t), c.webhook)) // so that nothing is sent there
	must(w.customer(t, c.db.ConnectionString).ExecContext(soon(t), "CREATE TABLE line AS SELECT generate_series(1, 7) AS n"))(t)
	c.backup = backup.Filename(must(stack.BackUp(soon(t), api, c.db.ID))(t).Filename)
	c.revoked = must(w.NewKey(soon(t), c.owner.Account))(t)
	must(w.Admin(soon(t), "key", "revoke", "--key", c.revoked[:len("pgh_0a1B2c3D")]))(t)
	return c
}

// want finds all of it again.
func (c *customersOf) want(t *testing.T) {
	t.Helper()
	api := c.owner.at(c.w.api)
	c.w.logsIn(t, c.db)
	dsn := c.w.PoolerURL(c.db.Name, c.role.Username, c.role.Password)
	var rows int
	noError(t, openOne(t, dsn).QueryRowContext(soon(t), "SELECT count(*) FROM line").Scan(&rows))
	people := must(api.Members.List(soon(t), c.db.ID))(t)
	hooks := must(collected(api.Webhooks.List().All(soon(t))))(t)
	if rows != c.rowsOfTheBackup || len(hooks) != 1 || hooks[0].ID != c.webhook {
		t.Errorf("%d rows, %+v", rows, hooks)
	}
	if !slices.ContainsFunc(people.Members, func(m wire.Member) bool {
		return m.Email == c.member.Email && m.Role == account.Developer
	}) {
		t.Errorf("the members are %+v", people)
	}
	gone := &user{Account: stack.Account{Key: c.revoked}, http: c.owner.http}
	_, err := gone.at(c.w.api).Databases.Get(soon(t), c.db.ID)
	stacktest.Refused(t, "the revoked key", err, fault.Unauthorized)
	kept := must(collected(api.Backups.List(c.db.ID).All(soon(t))))(t)
	if !slices.ContainsFunc(kept, func(b wire.Backup) bool { return b.Filename == c.backup && b.VerifiedAt != nil }) {
		t.Errorf("the backups are %+v", kept)
	}
}

// collected is a whole list.
func collected[T any](all iter.Seq2[T, error]) (list []T, err error) {
	for one, err := range all {
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// wantRestorable makes a clone of the backup, which is like a restore of it.
func (c *customersOf) wantRestorable(t *testing.T) {
	t.Helper()
	api, name := c.owner.at(c.w.api), newName("clone")
	cloned := must(api.Databases.Clone(soon(t), c.db.ID, wire.CloneDatabase{
		Name: name, DisplayName: name, Filename: &c.backup,
	}))(t)
	ended := must(api.Operations.Await(soon(t), cloned.Operation.ID, stack.Pause(0)))(t)
	if ended.Status != operation.Succeeded {
		t.Fatalf("the clone: %+v", ended)
	}
	var rows int
	noError(t, c.w.customer(t, cloned.Database.ConnectionString).QueryRowContext(soon(t), "SELECT count(*) FROM line").Scan(&rows))
	if rows != c.rowsOfTheBackup {
		t.Errorf("the clone has %d rows", rows)
	}
}

// wantNoMetadata makes sure that a rebuild has left nothing.
func (w *world) wantNoMetadata(t *testing.T) {
	t.Helper()
	var users int
	err := w.meta.QueryRowContext(soon(t), "SELECT count(*) FROM users").Scan(&users)
	if err != nil && !errors.Is(err, sql.ErrNoRows) || users > 0 {
		t.Errorf("%d users are there (%v)", users, err)
	}
}

// The runbook of docs/operate/disaster.md for metadata that are lost: one command makes them anew from what a server has kept in
// the object store, and everything goes on. The command may be killed, and run again.
func TestTheMetadataAreLost(t *testing.T) {
	t.Parallel()
	w := startOffsite(t)
	c := newCustomers(t, w)
	// Of a backup that is queued in the snapshot, the agent hears afterwards, and so of leases that the snapshot does not know.
	noError(t, w.batch.Stop(soon(t)))
	c.waiting = must(c.owner.at(w.api).Backups.Start(soon(t), c.db.ID))(t).Operation.ID
	taken := must(w.Admin(soon(t), "installation", "snapshot"))(t)
	noError(t, w.batch.Restart(soon(t), ""))
	w.quiet(t)

	w.loseMetadata(t)
	source := w.store.Flags("server")
	killed := must(w.LaunchAdmin(postgres.RebuildPoints[0], append([]string{"installation", "rebuild"}, source...)...))(t)
	noError(t, killed.AwaitEnd(soon(t)))
	if !killed.Killed() {
		t.Fatal("the rebuild was not killed")
	}
	w.wantNoMetadata(t)
	if made := w.rebuild(t, source...); made["snapshot"] != taken["snapshot"] {
		t.Errorf("rebuilt from %v, and taken is %v", made["snapshot"], taken["snapshot"])
	}
	w.startHosts(t)
	c.want(t)
	w.quiet(t)
	if o := must(c.owner.at(w.api).Operations.Get(soon(t), c.waiting))(t); o.Status != operation.Succeeded {
		t.Errorf("the backup that was queued: %+v", o)
	}
	c.wantRestorable(t)
	w.settled(t)
	w.lostAgain(t, c)
}

// lostAgain is a loss of what was made since the snapshot: it stays on the server, is told, and nothing ends by time until an
// operator has said that the metadata count.
func (w *world) lostAgain(t *testing.T, c *customersOf) {
	t.Helper()
	late := c.owner.create(t, w.api, newName("late"))
	w.loseMetadata(t)
	w.rebuild(t, w.fromAgent()...)
	w.startHosts(t)
	c.want(t)
	w.quiet(t)
	found := must(w.Doctor(soon(t), "--patience", "100ms"))(t)
	if !slices.ContainsFunc(found, func(d stack.Difference) bool {
		return doctor.Code(d.Code) == doctor.DatabaseUnknown && d.DatabaseID == string(late.ID)
	}) {
		t.Errorf("the doctor does not find %s: %+v", late.Name, found)
	}
	eventually(t, "the brake is on", func() (bool, string) {
		text := must(w.batch.Log())(t)
		return strings.Contains(string(text), "brake.on"), string(text)
	})
	confirm := must(w.LaunchAdmin("", "metadata", "confirm", "--yes", "--reason", "they were rebuilt"))(t)
	noError(t, confirm.AwaitEnd(soon(t)))
	eventually(t, "the brake is off", func() (bool, string) {
		text := must(w.batch.Log())(t)
		return strings.Contains(string(text), "brake.off"), string(text)
	})
	w.logsIn(t, late) // nobody has taken it from its owner
}
