package crash_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/objectstore"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/operation"
)

// burned is what a server has that is lost.
type burned struct {
	managed, single restorable
	guest           guest // with an allowlist
	deleted         deletionFlow
	role            login                // of managed, with a grant of its owner
	late            wire.CreatedDatabase // made in the seconds that are lost
}

func newBurned(t *testing.T, w *world) *burned {
	t.Helper()
	c := &burned{}
	c.managed.model, c.single.model = database.Managed, database.SingleLogin
	for _, r := range []*restorable{&c.managed, &c.single} {
		r.user = w.newUser(t, 5)
		r.create(t, w)
		must(w.Admin(soon(t), "enroll", "--database", string(r.db.ID), "--route", "clone"))(t)
	}
	c.guest = newGuest(t, w, "listed")
	must(c.guest.addNetwork(t, w.api, hereOnly))(t)
	c.deleted.end = operation.Succeeded
	c.deleted.ready(t, w)
	c.deleted.gone(t, w)
	roles := c.managed.user.at(w.api).Roles
	made := must(roles.Create(soon(t), c.managed.db.ID, newRole(), apiclient.IdempotencyKey("of the lost server")))(t)
	c.role = loginOf(must(roles.Reveal(soon(t), c.managed.db.ID, made.RoleID))(t))
	c.managed.asOwner(t, w, `CREATE TABLE granted (n integer); GRANT INSERT ON granted TO "`+c.role.username+`"`)
	return c
}

// answers has an owner write a row every some milliseconds, until the connection is lost. The returned function waits for that,
// and says when each was answered.
func (c *burned) answers(t *testing.T, w *world) (ended func() []time.Time) {
	t.Helper()
	c.single.asOwner(t, w, "CREATE TABLE answered (n integer PRIMARY KEY)")
	db := w.customer(t, c.single.db.ConnectionString)
	var list []time.Time
	var writer sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	writer.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if _, err := db.ExecContext(ctx, "INSERT INTO answered VALUES ($1)", n); err != nil {
				return
			}
			list = append(list, time.Now())
			time.Sleep(20 * time.Millisecond)
		}
	})
	return func() []time.Time {
		stop()
		writer.Wait()
		return list
	}
}

// A server is lost with its disk, its agent and PgBouncer, and comes back from its archive on a machine that has nothing: killed
// at each step of that, too. The control plane goes on with it as with the same server. What was lost is some seconds, and told.
func TestALostServerIsRebuilt(t *testing.T) {
	t.Parallel()
	const prefix = "server"
	objects := objectstore.Start(t)
	w := startStack(t, func(o *stack.Options) {
		o.AgentFlags, o.BlobDir, o.Archive = objects.Flags(prefix), objects.Blobs(prefix), true
		o.InitFlags = []string{"--archive-timeout", "2s"}
	})
	w.store = objects
	c := newBurned(t, w)
	window := func() (wire.RecoveryWindow, error) {
		return c.single.user.at(w.api).Recovery.GetWindow(soon(t), c.single.db.ID)
	}
	reaches := func(at time.Time) {
		t.Helper()
		eventually(t, "the window reaches to "+at.String(), func() (bool, string) {
			found, err := window()
			return err == nil && found.To != nil && !found.To.Before(at), fmt.Sprint(found, err)
		})
	}
	ended := c.answers(t, w)
	reaches(time.Now())
	before := time.Now().Add(time.Second)
	reaches(before)
	c.single.asOwner(t, w, "UPDATE word SET said = 'new'")
	time.Sleep(4 * time.Second)

	objects.Kill() // from here on everything is lost
	c.managed.asOwner(t, w, "UPDATE word SET said = 'lost'")
	rotated := must(c.managed.user.at(w.api).Logins.Rotate(soon(t), c.managed.db.ID, database.OwnerLogin,
		wire.Disconnect{ConfirmDisconnect: true}, apiclient.IdempotencyKey("lost")))(t)
	c.late = c.single.user.create(t, w.api, newName("late"))
	killed := time.Now()
	noError(t, w.agent.Kill())
	noError(t, w.Lose())
	answered := ended()

	noError(t, w.WriteArchiveKey(soon(t)))
	objects.Run(t)
	c.rebuilt(t, w)
	w.agent = must(w.ServeAgain(soon(t)))(t)
	dsn := must(w.ConsoleDSN())(t)
	w.console = must(sql.Open("postgres", dsn))(t)
	t.Cleanup(func() { _ = w.console.Close() }) // as newWorld does

	c.isBack(t, w, answered, killed)
	c.goesOn(t, w, rotated)
	since := time.Now().Add(time.Second)
	reaches(since)
	found := must(window())(t)
	if len(found.Gaps) != 1 || found.Gaps[0].From.After(killed) || found.Gaps[0].To.Before(killed) {
		t.Errorf("the window is %+v", found)
	}
	c.clonedAt(t, w, before, "old")
	c.clonedAt(t, w, since, "new")
	w.quiet(t)
	w.swept(t)
	known := w.databases(t)
	w.checkServer(t, known)
	w.checkGates(t, known)
	w.checkPooler(t, known)
	w.checkLogins(t, known)
	w.checkLimits(t, known)
	w.checkFiles(t)
	w.checkRecords(t)
	stacktest.WantHealthy(t, w)
}

// rebuilt has the command be killed at each of its steps, and then end.
func (c *burned) rebuilt(t *testing.T, w *world) {
	t.Helper()
	empty := func(when string) {
		t.Helper()
		if there := must(os.ReadDir(w.DataDir()))(t); len(there) > 0 {
			t.Errorf("%s: %s is in the data directory", when, there[0].Name())
		}
	}
	p := must(w.LaunchRecover(""))(t)
	eventually(t, "it fetches", func() (bool, string) {
		list, err := filepath.Glob(filepath.Join(w.Recovering(), "data", "base", "*", "*"))
		return err == nil && (len(list) > 0 || !p.Running()), fmt.Sprint(list, err)
	})
	noError(t, p.Kill())
	empty("killed over the fetch")
	for _, point := range archive.RebuildPoints {
		p := must(w.LaunchRecover("agent." + point))(t)
		noError(t, p.AwaitEnd(soon(t)))
		if !p.Killed() {
			t.Fatalf("%s was not hit: %s", point, must(p.Log())(t))
		}
		if point != "rebuild.placed" {
			empty("killed at " + point)
		}
	}
	p = must(w.LaunchRecover(""))(t)
	noError(t, p.AwaitEnd(soon(t)))
	said := must(p.Log())(t)
	if !bytes.Contains(said, []byte("with 4 databases, as it was at its last commit of ")) {
		t.Errorf("it says %s", said)
	}
	if key := must(os.ReadFile(w.ArchiveKeyFile()))(t); bytes.Contains(said, bytes.TrimSpace(key)) {
		t.Error("it says the key")
	}
	if _, err := os.Stat(w.Recovering()); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", w.Recovering(), err)
	}
}

// isBack demands what came back: what was answered 15 seconds before the end, and everybody with the password of before.
func (c *burned) isBack(t *testing.T, w *world, answered []time.Time, killed time.Time) {
	t.Helper()
	c.managed.says(t, w, "old")
	c.single.says(t, w, "new")
	var kept int
	db := w.customer(t, c.single.db.ConnectionString)
	noError(t, db.QueryRowContext(soon(t), "SELECT count(*) FROM answered").Scan(&kept))
	t.Logf("%d of %d rows came back", kept, len(answered))
	if kept < len(answered) && killed.Sub(answered[kept]) > 15*time.Second {
		t.Errorf("a row is lost that was answered %s before the end", killed.Sub(answered[kept]))
	}
	noError(t, c.guest.comesIn(t, w))
	c.guest.admits(t, w, hereOnly)
	w.getsIn(t, c.role)
	inserts := stacktest.Open(t, w.Server.URLFor(c.role.username, c.role.password, c.role.database))
	must(inserts.ExecContext(soon(t), "INSERT INTO granted VALUES (1)"))(t)
}

// goesOn demands that the control plane works with the server: the password that was changed in the lost seconds is told, and can
// be changed again; the database that was made then can be deleted; what was deleted can be recovered; and backups are made.
func (c *burned) goesOn(t *testing.T, w *world, rotated wire.LoginRotation) {
	t.Helper()
	found := must(w.Doctor(soon(t), "--patience", "100ms"))(t)
	told := map[doctor.Code]bool{}
	for _, d := range found {
		t.Logf("%s: %s", d.Code, d.Finding)
		told[doctor.Code(d.Code)] = true
	}
	if !told[doctor.CredentialDiffers] || !told[doctor.DatabaseMissing] {
		t.Error("the doctor does not tell of the password, and of the database that was made")
	}
	must(w.Admin(soon(t), "enroll", "--database", string(c.late.ID), "--route", "delete"))(t)
	for _, want := range []operation.Status{operation.Failed, operation.Succeeded} { // the first finds that it is not there
		asked := must(c.single.user.at(w.api).Databases.Delete(soon(t), c.late.ID))(t)
		eventually(t, "its deletion has "+string(want), func() (bool, string) {
			o := c.single.operation(t, w.api, asked.Operation.ID)
			return o.Status == want, fmt.Sprintf("%+v", o)
		})
	}
	gone := &purgeFlow{}
	gone.guest = c.single.guest
	gone.db = c.late
	gone.over(t, w)
	gone.begun(t, w)
	again := must(c.managed.user.at(w.api).Logins.Rotate(soon(t), c.managed.db.ID, database.OwnerLogin,
		wire.Disconnect{ConfirmDisconnect: true}, apiclient.IdempotencyKey("again")))(t)
	if again.CredentialGeneration <= rotated.CredentialGeneration || again.Password == "" {
		t.Errorf("%+v", again)
	}
	w.getsIn(t, login{c.managed.db.Name, c.managed.db.Username, again.Password})
	must(c.deleted.user.at(w.api).Databases.Recover(soon(t), c.deleted.db.ID))(t)
	w.quiet(t)
	c.deleted.says(t, w, "old")
	c.single.backUpNow(t, w)
}

// clonedAt makes a clone of a moment, and demands its word.
func (c *burned) clonedAt(t *testing.T, w *world, at time.Time, want string) {
	t.Helper()
	moment := at.UTC().Format(time.RFC3339Nano)
	name := newName("copy")
	asked := must(c.single.user.at(w.api).Databases.Clone(soon(t), c.single.db.ID, wire.CloneDatabase{
		Name: name, DisplayName: name, PointInTime: &moment,
	}, apiclient.IdempotencyKey(name)))(t)
	eventually(t, "the clone of "+moment, func() (bool, string) {
		o := c.single.operation(t, w.api, asked.Operation.ID)
		return o.Status.Final(), fmt.Sprintf("%+v", o)
	})
	copied := restorable{guest: c.single.guest}
	copied.db = asked.Database
	copied.says(t, w, want)
}
