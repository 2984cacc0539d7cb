package crash_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
)

// A dump that does not fit ends with BACKUP_STORAGE_FULL and leaves nothing; when there is room again, the next one works. The
// room runs out in the midst of the file: the look before a dump takes rows to be as compressible as most are, and these are
// not.
func TestDiskFullDuringADump(t *testing.T) {
	t.Parallel()
	change, grow, ok := smallDisk(t)
	if !ok {
		t.Log("no small file system could be mounted: an agent that may write no long file stands in for a full disk")
		change, grow = func(*stack.Options) {}, nil
	}
	w := startStack(t, change)
	if grow == nil {
		noError(t, w.agent.Stop(soon(t)))
		w.agent = must(w.LaunchAgentWithFileLimit(fileLimit))(t)
		noError(t, w.AwaitAgent(soon(t), w.agent))
		grow = func(t *testing.T) {
			noError(t, w.agent.Stop(soon(t)))
			w.restartAgent(t)
		}
	}
	g := newLoadedGuest(t, w, "full")
	must(g.conn.ExecContext(soon(t), incompressible))(t)
	o := g.startBackup(t, w.api)
	w.settled(t)
	o = g.operation(t, w.api, o.ID)
	if o.Status != "failed" || o.Error == nil || o.Error.Code != "BACKUP_STORAGE_FULL" {
		t.Fatalf("the backup that did not fit: %+v %s", o, fmt.Sprint(o.Error))
	}
	if list := g.backups(t, w.api); len(list) != 0 {
		t.Errorf("backups: %+v", list)
	}
	grow(t)
	g.startBackup(t, w.api)
	w.settled(t)
	list := g.backups(t, w.api)
	if len(list) != 1 || list[0].VerifiedAt == nil {
		t.Fatalf("backups: %+v", list)
	}
	g.restores(t, w, w.api, list[0])
}

// fileLimit is 8 or 16 MB, as the shell counts; incompressible makes 20 MB of rows.
const (
	fileLimit      = 16_000
	incompressible = `CREATE TABLE noise AS SELECT n, (SELECT string_agg(decode(md5(n || ' ' || m), 'hex'), '') FROM
		generate_series(1, 64) m) AS bytes FROM generate_series(1, 20000) n`
)
