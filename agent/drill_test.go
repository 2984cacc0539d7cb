package agent_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/id"
)

// drills asks until a drill of the moment is over, whichever agent does it, and demands how it ends.
func (x *archived) drills(t *testing.T, made command.BackupReport, outcome drill.Outcome, why string) drill.Found {
	t.Helper()
	q := command.Drill{
		ID: id.DrillID(agenttest.NewUUID()), At: x.at, Filename: agenttest.BackupName, ManifestSHA256: made.ManifestSHA256,
	}
	return x.drillEnds(t, q, outcome, why)
}

func (x *archived) drillEnds(t *testing.T, q command.Drill, outcome drill.Outcome, why string) drill.Found {
	t.Helper()
	var r command.DrillReport
	check.Eventually(t, "the drill does not end", func() bool {
		var status int
		status, r = x.asksForDrill(t, q)
		return status == http.StatusOK && !r.Running()
	})
	if r.Outcome != outcome || !strings.Contains(r.Why, why) {
		t.Fatalf("%+v; want %s, %q", r, outcome, why)
	}
	if left := check.Must(os.ReadDir(filepath.Join(x.Config.BackupDir, "archive", "beside")))(t); len(left) != 0 {
		t.Errorf("%d folders are left", len(left))
	}
	return r.Found
}

// asksForDrill returns no status where the agent is gone.
func (x *archived) asksForDrill(t *testing.T, q command.Drill) (status int, r command.DrillReport) {
	t.Helper()
	status, text, err := x.Request(http.MethodPost, "/v1/databases/"+x.of.ID+"/drill", check.Must(json.Marshal(q))(t))
	if err == nil && status == http.StatusOK {
		check.NoError(t, json.Unmarshal(text, &r))
	}
	return status, r
}

// marked replaces the marks of the database: each is set at a time, and says that nothing had changed until another.
func (x *archived) marked(t *testing.T, marks ...[2]time.Time) {
	t.Helper()
	ledger := x.SuperIn(t, agenttest.Wanted{Name: setup.MaintenanceDatabase})
	check.Must(ledger.Exec("DELETE FROM ledger.canary WHERE database_id = $1", x.of.ID))(t)
	var before *drill.Canary
	for i, m := range marks {
		c := drill.Canary{
			At: m[0].Truncate(time.Microsecond), OID: 1, Changes: int64(i), Counted: time.Unix(0, 0),
			SameUntil: m[1].Truncate(time.Microsecond),
		}
		c.Digest = c.Sum(x.of.DatabaseID(), before)
		before = &c
		check.Must(ledger.Exec("INSERT INTO ledger.canary VALUES ($1, $2, $3, $4, $5, $6, $7)", x.of.ID, c.At, c.OID, c.Changes,
			c.Counted, c.SameUntil, c.Digest))(t)
	}
}

// A drill proves a moment, and says how the database differs from the backup before; and it fails where what is had back has not
// what the ledger knows of the moment, or is not what a backup was since which nobody has written.
func TestAMomentIsProven(t *testing.T) {
	t.Parallel()
	x := archived{Stack: agenttest.Archived(t)}
	x.Started(t.Context(), t)
	x.StartBouncer(t.Context(), t)
	x.create(t)
	made := x.BackedUp(t, x.of.Backup(agenttest.NewUUID(), agenttest.BackupName, false))
	check.Must(x.Owner(t, x.of).Exec("CREATE UNLOGGED TABLE passing AS SELECT 1 AS n; SELECT lo_from_bytea(0, 'large')"))(t)
	began := time.Now()
	mark := func(at, sameUntil time.Duration) [2]time.Time {
		return [2]time.Time{began.Add(at), began.Add(sameUntil)}
	}
	first := mark(-3*time.Hour, -3*time.Hour)
	x.marked(t, first)
	x.writes(t)

	f := x.drills(t, made, drill.Proven, "").Facts
	if f.Database != x.of.Name || f.ServerVersion == "" || f.ReplayedTo.IsZero() || f.ReplayedTo.After(x.at) ||
		f.Took.FetchMs <= 0 || f.Took.ReplayMs <= 0 || f.Took.CompareMs <= 0 || f.Canaries != 1 {
		t.Errorf("%+v", f)
	}
	c := f.Contents
	if c.Tables != 2 || c.Unlogged != 1 || c.Rows != 2001 || c.LargeObjects != 1 || c.Bytes < 1e6 || len(c.Digest) != 64 {
		t.Errorf("%+v", c)
	}
	if r := f.Backup; r == nil || r.Unchanged || r.Differences == 0 || !strings.Contains(strings.Join(r.Differ, " "), "things") {
		t.Errorf("%+v", r)
	}

	later := mark(3*time.Hour, 2*time.Hour)
	x.marked(t, first, later)
	f = x.drills(t, made, drill.Failed, "was not written to since the backup").Facts
	if r := f.Backup; r == nil || !r.Unchanged || r.Differences == 0 || f.Contents.Digest != c.Digest {
		t.Errorf("%+v", f)
	}
	x.marked(t, first, mark(-2*time.Hour, -3*time.Hour), later)
	x.drills(t, made, drill.Failed, "is of an earlier time")

	q := command.Drill{ID: id.DrillID(agenttest.NewUUID()), At: x.at.Add(-30 * 24 * time.Hour)}
	x.drillEnds(t, q, drill.NotRun, "was not there then")
}

// An agent that is killed in a drill leaves nothing, and its successor begins it anew.
func TestKilledInADrill(t *testing.T) {
	for _, point := range agenttest.PointsOf(t, "drill") {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			x := archived{Stack: agenttest.Archived(t)}
			c := x.Child(t, "")
			x.StartBouncer(t.Context(), t)
			x.begin(t)
			c.Kill()
			q := command.Drill{ID: id.DrillID(agenttest.NewUUID()), At: x.at}
			c = x.Child(t, point)
			check.Eventually(t, "it is not killed", func() bool {
				status, _ := x.asksForDrill(t, q)
				return status == 0
			})
			c.Died(t)
			x.Child(t, "")
			if found := x.drillEnds(t, q, drill.Proven, ""); found.Facts.Backup != nil {
				t.Errorf("compared with %+v", found.Facts.Backup)
			}
		})
	}
}
