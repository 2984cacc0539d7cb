package agent_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// overlaySeed, where set, is a seed that a run has logged, for the same choices. The order in which they meet is chance.
const overlaySeed = "PGHERD_OVERLAY_SEED"

// ownersWork is what an owner may do, beside taking something from the groups. %d are small numbers.
var ownersWork = []string{
	"CREATE TABLE t%[1]d (id serial, n int GENERATED ALWAYS AS IDENTITY)", "CREATE SEQUENCE q%[1]d", "CREATE TABLE t%[1]d ()",
	"CREATE SCHEMA s%[1]d CREATE TABLE t%[2]d (id serial)", "CREATE VIEW v%[1]d AS TABLE t%[2]d",
	"CREATE MATERIALIZED VIEW m%[1]d AS TABLE t%[2]d", "CREATE TABLE s%[1]d.t%[2]d (id serial)",
	"BEGIN; CREATE TABLE late%[1]d (id serial); SELECT pg_sleep(0.3); COMMIT", "DROP TABLE late%[1]d",
	"BEGIN; LOCK TABLE t%[1]d; SELECT pg_sleep(0.2); COMMIT", "TRUNCATE t%[1]d RESTART IDENTITY",
	"ALTER TABLE t%[1]d RENAME TO t%[2]d", "ALTER TABLE t%[1]d SET SCHEMA s%[2]d", "ALTER SCHEMA s%[1]d RENAME TO s%[2]d",
	"DROP TABLE t%[1]d CASCADE", "DROP SCHEMA s%[1]d CASCADE",
	"REVOKE ALL ON SCHEMA s%[1]d FROM CURRENT_USER", "GRANT ALL ON SCHEMA s%[1]d TO CURRENT_USER",
	"GRANT SELECT ON t%[1]d TO PUBLIC", "REVOKE ALL ON t%[1]d FROM CURRENT_USER, PUBLIC",
	"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC", "ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM PUBLIC",
}

// A database is opted in, changed, backed up, restored and stopped in whatever order. In the end nothing lacks its rights.
func TestOptInAmongAllElse(t *testing.T) {
	t.Parallel()
	lasts := 8 * time.Second
	if sample.Whole() {
		lasts = 15 * time.Second
	}
	seed := rand.Uint64()
	if text := os.Getenv(overlaySeed); text != "" {
		seed = check.Must(strconv.ParseUint(text, 10, 64))(t)
	}
	t.Logf("%s=%d", overlaySeed, seed)
	s := realStack(t)
	r := randomLife{stack: s, w: s.made(t, database.SingleLogin), generation: 1, over: make(chan struct{})}
	var working sync.WaitGroup
	end := sync.OnceFunc(func() {
		close(r.over)
		working.Wait()
	})
	defer end()
	for worker := range uint64(3) {
		working.Go(func() { r.owns(t, rand.New(rand.NewPCG(seed, worker))) })
	}
	r.backsUp(t) // from before the opt-in
	working.Go(func() { r.optsIn(t, rand.New(rand.NewPCG(seed, 3))) })
	dice := rand.New(rand.NewPCG(seed, 4))
	for began := time.Now(); time.Since(began) < lasts && !t.Failed(); {
		switch dice.IntN(3) {
		case 0:
			r.backsUp(t)
		case 1:
			r.restores(t, r.files[dice.IntN(len(r.files))])
		default:
			r.stopsAndStarts(t)
		}
	}
	end()
	s.doneInTheEnd(t, r.w.optIn())
	r.optedIn.Store(true)
	s.nothingLacks(t, r.w)
	r.restores(t, r.files[0])
	check.Must(s.owner(t, r.w).Exec("CREATE SCHEMA last CREATE TABLE last (id serial)"))(t)
	s.nothingLacks(t, r.w)
	t.Logf("%d backups, %d restores, %d stops", len(r.files), r.restored, r.generation/2)
}

// randomLife is that of a database.
type randomLife struct {
	*stack
	w          wanted
	over       chan struct{} // closed when it ends
	optedIn    atomic.Bool
	still      sync.RWMutex // held while nothing may be renamed or dropped: then pg_dump fails
	generation int64        // of its access
	files      []string
	restored   int
}

// paused waits a little; it is false when all is over.
func (r *randomLife) paused(dice *rand.Rand, most time.Duration) bool {
	select {
	case <-r.over:
		return false
	case <-time.After(time.Duration(dice.Int64N(int64(most)))):
		return true
	}
}

// owns has the owner at work. Much of that fails: there is no such thing, or the database is stopped.
func (r *randomLife) owns(t *testing.T, dice *rand.Rand) {
	db := r.owner(t, r.w)
	for r.paused(dice, 20*time.Millisecond) {
		r.still.RLock()
		if _, err := db.Exec(fmt.Sprintf(ownersWork[dice.IntN(len(ownersWork))], dice.IntN(6), dice.IntN(6))); err != nil {
			_, _ = db.Exec("ROLLBACK") // where there is something
		}
		r.still.RUnlock()
	}
}

func (r *randomLife) optsIn(t *testing.T, dice *rand.Rand) {
	for r.paused(dice, 3*time.Second) {
		switch _, reason, err := r.send(r.w.optIn()); {
		case err == nil && reason == "":
			r.optedIn.Store(true)
		case err != nil || !isForLater(reason):
			t.Errorf("the opt-in: %s %v", reason, err)
		}
	}
}

func (r *randomLife) backsUp(t *testing.T) {
	r.still.Lock()
	defer r.still.Unlock()
	file := time.Unix(int64(len(r.files)), 0).UTC().Format("20060102_150405") + ".sql.gz"
	r.wantBackup(t, r.w.backup(newUUID(), file, false), command.BackupDone, "")
	r.files = append(r.files, file)
}

func (r *randomLife) restores(t *testing.T, file string) {
	operation, optedIn := newUUID(), r.optedIn.Load()
	load := told(operation, 1, command.Load{
		DatabaseID: r.w.databaseID(), Compare: true,
		Source: command.Source{DatabaseID: r.w.databaseID(), Filename: backup.Filename(file)},
	})
	if report := r.loaded(t, load); report.State != command.LoadReady {
		t.Errorf("%+v", report)
		return
	}
	for _, c := range []protocol.Command{r.w.switching(operation), r.w.discarding(operation)} {
		r.doneInTheEnd(t, c)
	}
	if optedIn {
		r.nothingLacks(t, r.w)
	}
	r.restored++
}

func (r *randomLife) stopsAndStarts(t *testing.T) {
	for _, open := range []bool{false, true} {
		r.generation++
		r.done(t, r.w.access(r.generation, open, !open))
	}
}
