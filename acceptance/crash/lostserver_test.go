package crash_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/objectstore"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
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

// A server burns with everything on it. One command has its databases made anew on another one, out of the object store: with the
// same passwords, roles and grants, what was committed up to the last seconds, and the backups. The doctor finds nothing.
func TestALostServer(t *testing.T) {
	t.Parallel()
	objects := objectstore.Start(t)
	of := func(prefix string) func(*stack.Options) {
		return func(o *stack.Options) {
			o.AgentFlags, o.BlobDir, o.Archive = objects.Flags(prefix), objects.Blobs(prefix), true
		}
	}
	w := startStack(t, of("one"))
	w.store = objects
	options := stack.Options{LeaseHold: leaseHold}
	of("two")(&options)
	other := stacktest.Start(soon(t), t, options, stack.CrashPoints)
	owner := w.newUser(t, 5)
	shop, plain := owner.create(t, w.api, "shop"), owner.create(t, w.api, "plain")
	must(w.Register(soon(t), "two", other))(t) // the databases are on the first one
	fill := w.customer(t, shop.ConnectionString)
	must(fill.ExecContext(soon(t), "CREATE TABLE orders (id serial PRIMARY KEY, at timestamptz DEFAULT clock_timestamp())"))(t)
	backup := must(owner.at(w.api).Backups.Start(soon(t), plain.ID))(t)
	eventually(t, "the backup is made", func() (bool, string) {
		o, err := owner.at(w.api).Operations.Get(soon(t), backup.Operation.ID)
		return err == nil && o.Status == "succeeded", fmt.Sprint(o.Status, err)
	})
	eventually(t, "a window", func() (bool, string) {
		window, err := owner.at(w.api).Recovery.GetWindow(soon(t), shop.ID)
		return err == nil && window.From != nil, fmt.Sprint(window, err)
	})
	var answered int
	for began := time.Now(); time.Since(began) < 15*time.Second; answered++ {
		must(fill.ExecContext(soon(t), "INSERT INTO orders DEFAULT VALUES"))(t)
		time.Sleep(50 * time.Millisecond)
	}
	lostAt := time.Now()
	noError(t, w.Server.Kill())
	noError(t, w.agent.Kill())
	noError(t, w.Pooler.Kill())
	noError(t, os.RemoveAll(w.BackupDir()))
	noError(t, os.RemoveAll(filepath.Join(filepath.Dir(w.KeyringFile()), "server")))

	eventually(t, "it is gone", func() (bool, string) {
		err := w.RecoverServer(soon(t), "two", "--first", "shop")
		return err == nil, fmt.Sprint(err)
	})
	for _, d := range []wire.CreatedDatabase{shop, plain} {
		eventually(t, d.Name+" is back", func() (bool, string) {
			list, err := owner.at(w.api).Operations.List(d.ID).Page(soon(t), apiclient.Page{})
			for _, o := range list.Data {
				if o.Type != "rebuild" {
					continue
				}
				if o.Status == "failed" {
					t.Fatalf("%s: %+v", d.Name, o.Error)
				}
				return o.Status == "succeeded", o.Stage
			}
			return false, fmt.Sprint("no rebuild: ", err)
		})
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
		found, err := w.DoctorOf(soon(t), "two")
		return err == nil && len(found) == 0, fmt.Sprint(found, err)
	})
}
