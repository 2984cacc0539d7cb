package diskroom_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// sortOf sorts so many thousands of rows of about a kilobyte, on disk.
func sortOf(thousands string) string {
	return `PERFORM count(*) FROM (SELECT repeat(md5(n::text), 30) FROM generate_series(1, ` + thousands + `000) n ORDER BY 1) s;`
}

// What a customer's code does in a copy takes room only within the limit, in files for sorting too.
func TestACopyThatOutgrowsItsRoomIsStopped(t *testing.T) {
	for name, body := range map[string]string{
		"rows": `LOOP BEGIN INSERT INTO public.junk SELECT repeat(md5(n::text), 30) FROM generate_series(1, 10000) n;
			EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP;`,
		"temporary rows": `CREATE TEMPORARY TABLE junk AS SELECT repeat(md5(n::text), 30) FROM generate_series(1, 100000000) n;`,
		"sorted rows":    sortOf("100000"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Load(`CREATE TABLE junk (v text); ALTER TABLE junk ALTER v SET STORAGE plain;` + backuptest.Trap(body) +
				`CREATE TABLE t (n int CHECK (trap())); INSERT INTO t VALUES (1)`)
			w.Cramped(1<<40, backuptest.AsIs)
			_, err := w.Run(w.Agent, w.Request())
			numbers := regexp.MustCompile(`its copy takes \d+ MB, where 7\d MB do for .* and 2\d\d MB are allowed`)
			if !fault.Has(err, fault.BackupNotVerified) || !numbers.MatchString(err.Error()) {
				t.Errorf("%v", err)
			}
			if left := w.Leftovers(); left != "" || w.Reservations() != 0 {
				t.Errorf("left: %s, and %d reservations", left, w.Reservations())
			}
		})
	}
}

// An agent that cannot see PostgreSQL's disk has no room there to share out, and stops such a copy all the same.
func TestACopyOnADiskThatIsNotSeenIsStopped(t *testing.T) {
	w := newWorld(t)
	w.Load(backuptest.Trap(sortOf("100000")) + `CREATE TABLE t (n int CHECK (trap())); INSERT INTO t VALUES (1)`)
	config := w.Config()
	config.DataDir, config.LookPause = "/no/such/folder", 20*time.Millisecond
	if _, err := w.Run(w.NewAgent(config), w.Request()); !fault.Has(err, fault.BackupNotVerified) {
		t.Errorf("%v", err)
	}
}

// A copy that needs more than was reserved gets it where there is room.
func TestACopyGetsMoreRoomWhereThereIsSome(t *testing.T) {
	w := newWorld(t)
	w.Load(backuptest.Trap(sortOf("110")+"PERFORM pg_sleep(0.5);"+sortOf("110")) +
		`CREATE TABLE t (n int CHECK (trap())); INSERT INTO t VALUES (1)`)
	w.Cramped(backuptest.RoomFor, backuptest.AsIs)
	if result, err := w.Run(w.Agent, w.Request()); err != nil || result.VerifiedAt == nil {
		t.Errorf("%v", err)
	}
}

// When others use up the disk below the reserve, the copy makes room, and is made again once there is some.
func TestACopyMakesRoomWhenTheDiskFillsUp(t *testing.T) {
	for name, back := range map[string]bool{"for a while": true, "for good": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Load(backuptest.Trap("PERFORM pg_sleep(1.5);") + `CREATE TABLE t (n int CHECK (trap())); INSERT INTO t VALUES (1)`)
			d := w.Cramped(backuptest.RoomFor, func(c *backuptest.Config) { c.RoomWait = 3 * time.Second })
			created := 0
			w.Agent.Crash = func(point string) {
				if point == "backup.verify.database-created" {
					if created++; created == 1 {
						d.Free.Store(0)
					}
				}
			}
			var seen backuptest.Stages
			result, err := w.Agent.Run(t.Context(), w.Request(), func(stage string, percent int, bytes command.Bytes) {
				if seen.Add(stage, percent, bytes); stage == jobs.StageQueued && back {
					d.Free.Store(backuptest.RoomFor)
				}
			})
			switch {
			case back && (err != nil || result.VerifiedAt == nil || created != 2 || !slices.Contains(seen.Seen(), jobs.StageQueued)):
				t.Errorf("%v, %d copies, stages %v", err, created, seen.Seen())
			case !back && (!fault.Has(err, fault.BackupStorageFull) || created != 1):
				t.Errorf("%v, %d copies", err, created)
			}
			if left := w.Leftovers(); left != "" || w.Reservations() != 0 {
				t.Errorf("left: %s, and %d reservations", left, w.Reservations())
			}
		})
	}
}

// Rows that cannot be compressed make a dump larger than half of the database. It gets more room where nobody else was
// promised it.
func TestADumpThatOutgrowsItsRoom(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT n, (SELECT string_agg(decode(md5(n || ' ' || m), 'hex'), '') FROM generate_series(1, 64) m)
		AS bytes FROM generate_series(1, 20000) n`)
	d := w.Cramped(1<<40, backuptest.AsIs)
	w.Files = w.Store(store.Options{Reserve: 1, Disk: func(path string) (store.Disk, error) {
		on, err := d.At(path)
		on.Free -= sizeOf(t, w.Root)
		return on, err
	}})
	config := w.Config()
	config.LookPause = 10 * time.Millisecond
	w.Agent = w.NewAgent(config)
	first, second := w.Numbered(1), w.Numbered(2)
	first.Verify, second.Verify = false, false
	release := w.HoldFirst(first)
	reserved := w.Held(diskroom.Dump).Bytes
	d.Free.Store(2*reserved + 1<<20)
	_, err := w.Run(w.Agent, second)
	if !fault.Has(err, fault.BackupStorageFull) || !strings.Contains(err.Error(), "is larger than expected: it takes ") {
		t.Errorf("where the rest is promised to another: %v", err)
	}
	d.Free.Store(1 << 40)
	if _, err := w.Run(w.Agent, second); err != nil {
		t.Errorf("where there is room: %v", err)
	}
	release()
}

// sizeOf is the size of all files below a folder; one that is just gone has none.
func sizeOf(t *testing.T, root string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(root, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // it is gone
		}
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return sum
}

// The server's limit on temporary files does not hold for the indexes of a copy.
func TestACopyIsExemptFromTheLimitOnTemporaryFiles(t *testing.T) {
	w := &world{backuptest.NewOwn(t)}
	super := w.Cluster.URL("postgres")
	clustertest.Exec(t, super, `ALTER SYSTEM SET temp_file_limit = '1MB'`, `ALTER SYSTEM SET maintenance_work_mem = '1MB'`)
	w.Load(`CREATE TABLE t AS SELECT md5(n::text) AS v FROM generate_series(1, 100000) n`)
	w.Load(`SET maintenance_work_mem = '64MB'; CREATE INDEX ON t (v)`)
	clustertest.Exec(t, super, `SELECT pg_reload_conf()`)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var limit string
		db := clustertest.Database{URL: super}.Open(t)
		check.NoError(t, db.QueryRow(`SHOW temp_file_limit`).Scan(&limit))
		if limit == "1MB" {
			break
		}
	}
	if result, err := w.Run(w.Agent, w.Request()); err != nil || result.VerifiedAt == nil {
		t.Errorf("%v", err)
	}
}
