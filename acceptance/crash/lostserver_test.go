package crash_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/objectstore"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/rebuilds"
)

// reached is a database at another server than the first, by the address that the API shows of it.
func reached(t *testing.T, on *stack.Stack, d wire.CreatedDatabase) string {
	t.Helper()
	u := must(url.Parse(d.ConnectionString))(t)
	_, port, _ := strings.Cut(on.PoolerAddress(), ":")
	u.Host = u.Hostname() + ":" + port
	query := u.Query()
	query.Set("sslrootcert", on.CAFile())
	u.RawQuery = query.Encode()
	return u.String()
}

// burning is a stack whose server is about to be lost, and another server.
type burning struct {
	*world
	other *stack.Stack
	owner *user
}

// startBurning makes databases by their names, all on the server that is about to be lost.
func startBurning(t *testing.T, names ...string) (b *burning, made []wire.CreatedDatabase) {
	t.Helper()
	objects := objectstore.Start(t)
	of := func(prefix string) func(*stack.Options) {
		return func(o *stack.Options) {
			o.AgentFlags, o.BlobDir, o.Archive = objects.Flags(prefix), objects.Blobs(prefix), true
		}
	}
	b = &burning{world: startStack(t, of("one"))}
	b.store = objects
	b.owner = b.newUser(t, len(names)+1)
	for _, name := range names {
		made = append(made, b.owner.create(t, b.api, name))
	}
	var options stack.Options
	of("two")(&options)
	b.other = b.beside(t, options) // only now: the databases are on the first one
	return b, made
}

// archived waits until a database can be had back.
func (b *burning) archived(t *testing.T, d wire.CreatedDatabase) {
	t.Helper()
	eventually(t, "a window", func() (bool, string) {
		window, err := b.owner.at(b.api).Recovery.GetWindow(soon(t), d.ID)
		return err == nil && window.From != nil, fmt.Sprint(window, err)
	})
}

// burns loses the server, with its disk.
func (b *burning) burns(t *testing.T) {
	t.Helper()
	noError(t, b.Server.Kill())
	noError(t, b.agent.Kill())
	noError(t, b.Pooler.Kill())
	noError(t, os.RemoveAll(b.BackupDir()))
	noError(t, os.RemoveAll(filepath.Join(filepath.Dir(b.KeyringFile()), "server")))
}

// ordered has what is left made anew, once it is sure that the server is gone.
func (b *burning) ordered(t *testing.T, more ...string) {
	t.Helper()
	eventually(t, "it is gone", func() (bool, string) {
		err := b.RecoverServer(soon(t), "two", more...)
		return err == nil, fmt.Sprint(err)
	})
}

// back waits until a database is made anew.
func (b *burning) back(t *testing.T, d wire.CreatedDatabase) {
	t.Helper()
	b.whileItGoesOn(t, d.Name+" is back", func() bool {
		list, err := b.owner.at(b.api).Operations.List(d.ID).Page(soon(t), apiclient.Page{})
		at := slices.IndexFunc(list.Data, func(o wire.Operation) bool { return o.Type == "rebuild" })
		if err != nil || at < 0 {
			return false
		}
		if list.Data[at].Status == "failed" {
			t.Fatalf("%s: %+v", d.Name, list.Data[at].Error)
		}
		return list.Data[at].Status == "succeeded"
	})
}

// whileItGoesOn waits until something has happened, for as long as databases are made anew: all the stages of that together take
// long on a busy machine.
func (b *burning) whileItGoesOn(t *testing.T, what string, happened func() bool) {
	t.Helper()
	const far = `SELECT coalesce(string_agg(format('%s %s %s %s', id, status, stage, progress), '; ' ORDER BY id), '')
		FROM operations WHERE kind = 'rebuild'`
	for last, is := "", false; !is; {
		eventually(t, what+", or it goes on", func() (bool, string) {
			var now string
			noError(t, b.meta.QueryRowContext(soon(t), far).Scan(&now))
			on := now != last
			last, is = now, happened()
			return is || on, now
		})
	}
}

// A server burns with everything on it. One command has its databases made anew on another one, out of the object store: with the
// same passwords, roles and grants, what was committed up to the last seconds, and the backups. The doctor finds nothing.
func TestALostServer(t *testing.T) {
	t.Parallel()
	w, made := startBurning(t, "shop", "plain")
	owner, other, shop, plain := w.owner, w.other, made[0], made[1]
	fill := w.customer(t, shop.ConnectionString)
	must(fill.ExecContext(soon(t), "CREATE TABLE orders (id serial PRIMARY KEY, at timestamptz DEFAULT clock_timestamp())"))(t)
	backup := must(owner.at(w.api).Backups.Start(soon(t), plain.ID))(t)
	eventually(t, "the backup is made", func() (bool, string) {
		o, err := owner.at(w.api).Operations.Get(soon(t), backup.Operation.ID)
		return err == nil && o.Status == "succeeded", fmt.Sprint(o.Status, err)
	})
	w.archived(t, shop)
	var answered int
	for began := time.Now(); time.Since(began) < 15*time.Second; answered++ {
		must(fill.ExecContext(soon(t), "INSERT INTO orders DEFAULT VALUES"))(t)
		time.Sleep(50 * time.Millisecond)
	}
	lostAt := time.Now()
	w.burns(t)
	w.ordered(t, "--first", "shop")
	for _, d := range made {
		w.back(t, d)
	}
	back := openOne(t, reached(t, other, shop))
	var rows int
	var last time.Time
	noError(t, back.QueryRowContext(soon(t), "SELECT count(*), max(at) FROM orders").Scan(&rows, &last))
	if lost := lostAt.Sub(last); lost > 15*time.Second || rows == 0 {
		t.Errorf("%d of %d rows are back, and the last %s are lost", rows, answered, lost)
	}
	var who string
	noError(t, openOne(t, reached(t, other, plain)).QueryRowContext(soon(t), "SELECT current_user").Scan(&who))
	list := must(owner.at(w.api).Backups.List(plain.ID).Page(soon(t), apiclient.Page{}))(t).Data
	if len(list) != 1 || list[0].VerifiedAt == nil {
		t.Errorf("backups: %+v", list)
	}
	again := must(owner.at(w.api).Backups.Start(soon(t), shop.ID))(t)
	eventually(t, "another backup is made", func() (bool, string) {
		o, err := owner.at(w.api).Operations.Get(soon(t), again.Operation.ID)
		return err == nil && o.Status == "succeeded", fmt.Sprint(o.Status, err)
	})
	must(w.Admin(soon(t), "server", "remove", "--server", w.ServerID()))(t)
	eventually(t, "the doctor finds nothing", func() (bool, string) {
		found, err := w.Doctor(soon(t), "--server", "two", "--deep")
		return err == nil && len(found) == 0, fmt.Sprint(found, err)
	})
}

// rare are points at which core alone kills: an overlay, a database that is stopped or has no archive, and a failure.
var rare = []string{"overlay", "access", "close", "adopt", "adopting", "failing", "failed", "reserved", "prepare", "admit"}

// A batch host that is killed over the rebuild of a database, at whichever point, leaves it to the next one.
func TestKilledOverALostServer(t *testing.T) {
	t.Parallel()
	points := slices.DeleteFunc(pointsOfKind(t, rebuilds.Kind), func(p string) bool {
		_, at, _ := strings.Cut(p, ".")
		return slices.Contains(rare, strings.TrimPrefix(strings.TrimPrefix(at, "before-"), "after-"))
	})
	points = sample.OneIn(t, 24, points)
	names := make([]string, len(points))
	for i := range points {
		names[i] = fmt.Sprintf("shop-%d", i)
	}
	w, made := startBurning(t, names...)
	for _, d := range made {
		w.archived(t, d)
	}
	w.burns(t)
	noError(t, w.batch.Kill())
	status := func(which, is string) { // of one that is being created nothing is made anew
		t.Helper()
		must(w.meta.ExecContext(soon(t), "UPDATE databases SET status = $1 WHERE "+which, is))(t)
	}
	status("true", "creating")
	for i, point := range points {
		noError(t, w.batch.Relaunch(point)) // which may die over the one before, and before it is ready
		status("id = '"+string(made[i].ID)+"'", "active")
		eventually(t, "it is ordered", func() (bool, string) {
			err := w.RecoverServer(soon(t), "two")
			var is string
			const where = "SELECT s.name FROM databases d JOIN servers s ON s.id = d.server_id WHERE d.id = $1"
			noError(t, w.meta.QueryRowContext(soon(t), where, string(made[i].ID)).Scan(&is))
			return is == "two", fmt.Sprint(err)
		})
		w.whileItGoesOn(t, "somebody dies at "+point, func() bool { return !w.batch.Running() })
		dies(t, w.batch.Process, point)
	}
	noError(t, w.batch.Restart(soon(t), ""))
	for _, d := range made {
		w.back(t, d)
		var who string
		noError(t, openOne(t, reached(t, w.other, d)).QueryRowContext(soon(t), "SELECT current_user").Scan(&who))
	}
}
