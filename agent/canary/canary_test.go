package canary

import (
	"database/sql"
	"os"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/ledgertest"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// shops is a server with some databases, which are in its ledger.
type shops struct {
	*Marks
	ledger *sql.DB
	each   map[id.DatabaseID]*sql.DB
}

func newShops(t *testing.T) shops {
	t.Helper()
	server, ledger, _ := ledgertest.NewOn(t)
	x := shops{New(ledger, time.Hour, zap.NewNop()), ledger, map[id.DatabaseID]*sql.DB{}}
	for _, name := range []id.DatabaseID{"busy", "idle"} {
		ledgertest.Exec(t, ledger, "CREATE DATABASE "+string(name))
		ledgertest.Exec(t, ledger, `INSERT INTO ledger.database (id, name, role_model, connection_cap, made_by, oid, backup_key)
			SELECT datname, datname, 'managed', 0, '', oid, decode(repeat('6b', 32), 'hex') FROM pg_database WHERE datname = $1`, name)
		x.each[name] = clustertest.Database{URL: server.URL(string(name))}.Open(t)
	}
	return x
}

// writes has something written, and waits until it is counted.
func (x shops) writes(t *testing.T, to id.DatabaseID, statement string) {
	t.Helper()
	const counted = "SELECT tup_inserted + tup_updated + tup_deleted FROM pg_stat_database WHERE datname = $1"
	before := check.Must(pg.One[int64](t.Context(), x.ledger, counted, string(to)))(t)
	ledgertest.Exec(t, x.each[to], statement)
	ledgertest.Exec(t, x.each[to], "SELECT pg_stat_force_next_flush()")
	check.Eventually(t, "it is not counted", func() bool {
		ledgertest.Exec(t, x.each[to], "SELECT 1")
		return check.Must(pg.One[int64](t.Context(), x.ledger, counted, string(to)))(t) != before
	})
}

func (x shops) looks(t *testing.T) time.Time { t.Helper(); return check.Must(x.Look(t.Context()))(t) }

// have is how many marks there are, each of which follows on the one before.
func (x shops) have(t *testing.T, of id.DatabaseID, want int) []drill.Canary {
	t.Helper()
	list := check.Must(x.Of(t.Context(), of))(t)
	if len(list) != want {
		t.Fatalf("%s has %d marks, want %d: %+v", of, len(list), want, list)
	}
	now := time.Now().Add(time.Minute)
	if why := (drill.Marks{Of: of, Live: list, Had: list}).Compare(now); why != "" {
		t.Error(why)
	}
	if want > 0 && list[0].Digest != list[0].Sum(of, nil) {
		t.Errorf("%+v is not the first", list[0])
	}
	return list
}

// What has changed gets a mark, which says until when it had not; what has not gets none.
func TestMarksOfWhatHasChanged(t *testing.T) {
	x := newShops(t)
	x.writes(t, "busy", "CREATE TABLE things (n int)")
	first := x.looks(t)
	x.have(t, "busy", 1)
	second := x.looks(t)
	x.have(t, "busy", 1)
	x.writes(t, "busy", "INSERT INTO things VALUES (1)")
	x.looks(t)
	list := x.have(t, "busy", 2)
	if !list[0].At.Equal(first) || !list[1].SameUntil.Equal(second) || list[1].Changes != list[0].Changes+1 {
		t.Errorf("%+v after looks at %s and %s", list, first, second)
	}
	x.have(t, "idle", 1)
	if last := check.Must(Last(t.Context(), x.ledger, time.Now()))(t); !last.Equal(list[1].At) {
		t.Errorf("the last one of all is of %s", last)
	}
	for _, statement := range []string{"TRUNCATE things", "ALTER TABLE things ADD m int", "DROP TABLE things"} {
		x.writes(t, "busy", statement)
		x.looks(t)
	}
	x.have(t, "busy", 5)

	// Another process has not looked before.
	x.Marks = New(x.ledger, time.Hour, zap.NewNop())
	x.writes(t, "busy", "CREATE TABLE things (n int)")
	x.looks(t)
	if list := x.have(t, "busy", 6); !list[5].SameUntil.Equal(list[4].At) {
		t.Errorf("%+v", list[5])
	}

	// What was counted is lost with a crash, and so is whether it is the same number.
	ledgertest.Exec(t, x.ledger, "SELECT pg_stat_reset_shared('bgwriter')")
	x.looks(t)
	x.have(t, "busy", 7)
	x.have(t, "idle", 2)

	// Another database in its place has another OID, and what is purged has no marks.
	ledgertest.Exec(t, x.ledger, "UPDATE ledger.database SET oid = NULL WHERE id = 'idle'")
	ledgertest.Exec(t, x.ledger, `UPDATE ledger.database
		SET oid = (SELECT oid FROM pg_database WHERE datname = 'template1') WHERE id = 'idle'`)
	x.looks(t)
	x.have(t, "idle", 3)
	ledgertest.Exec(t, x.ledger, "DELETE FROM ledger.database WHERE id = 'idle'")
	x.have(t, "idle", 0)
}

// Old marks are forgotten, but for the last of them of each database; and a clock that was set back sets none before the last.
func TestOldMarksAreForgotten(t *testing.T) {
	x := newShops(t)
	x.looks(t)
	const moved = `INSERT INTO ledger.canary SELECT database_id, at - $1 * interval '1 minute', oid, 1, counted, same_until, digest
		FROM ledger.canary WHERE database_id = 'busy' AND at > now() - interval '30 minutes'`
	for _, minutes := range []int{61, 62, 300} {
		ledgertest.Exec(t, x.ledger, moved, minutes)
	}
	x.looks(t)
	if n := len(check.Must(x.Of(t.Context(), "busy"))(t)); n != 2 {
		t.Errorf("%d are left", n)
	}
	ledgertest.Exec(t, x.ledger, "UPDATE ledger.canary SET at = at + interval '1 hour' WHERE database_id = 'idle'")
	x.writes(t, "idle", "CREATE TABLE things (n int)")
	x.looked = time.Now().Add(time.Hour)
	ahead := x.looked
	x.looks(t)
	if n := len(check.Must(x.Of(t.Context(), "idle"))(t)); n != 1 || !x.looked.Equal(ahead) {
		t.Errorf("%d marks, looked at %s, although the clock was set back", n, x.looked)
	}
}
