package offsite

import (
	"bytes"
	"context"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/backupfiles"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// write is a transaction that inserts one row.
type write struct {
	number         int
	sent, answered time.Time // answered is zero for one that was rolled back
}

// history is what was written to a database, in no order.
type history struct {
	of     agenttest.Wanted
	mu     sync.Mutex
	writes []write
}

const (
	historyDatabases = 3
	historyWriters   = 2 // of each
)

// A database that is had back as it was at a moment holds exactly what was committed before: each transaction that was answered
// by then, and none that was sent later. One that was under way then may be there or not.
func TestHistories(t *testing.T) {
	t.Parallel()
	targets, long := 200, time.Minute
	if !sample.Whole() {
		targets, long = 6, 8*time.Second
	}
	seed := max(1, sample.Number(t))
	random := rand.New(rand.NewPCG(seed, 0))
	s := agenttest.Archived(t)
	_, log, _ := s.Started(t.Context(), t)
	defer func() {
		if t.Failed() {
			for _, line := range log.FilterLevelExact(zap.WarnLevel).All() {
				t.Log(line.Message, line.ContextMap())
			}
		}
	}()
	s.StartBouncer(t.Context(), t)
	s.SendArchiveKey(t)
	histories := make([]*history, historyDatabases)
	for i := range histories { // the last one after the copy, from which it cannot be fetched; the first ones maybe during it
		if i == len(histories)-1 {
			check.Eventually(t, "there is no window", func() bool {
				w := s.Window(t, histories[0].of).Window
				return !w.Empty() && w.From.Before(time.Now())
			})
		}
		histories[i] = &history{of: s.Made(t, database.Managed)}
		check.Must(s.Owner(t, histories[i].of).Exec("CREATE TABLE history (number bigint)"))(t)
	}
	began := time.Now()
	written(t, s, histories, long)
	t.Logf("written for %s", since(began))
	// While moments are had back, the ledger is written to: a segment a second would be more than a busy machine stores.
	configure(t, s, "archive_timeout", "'60s'")
	began = time.Now()
	var checks errgroup.Group
	checks.SetLimit(2) // as many are had back at a time
	for n := range targets {
		h := histories[n%len(histories)]
		at, name := h.moment(random), backup.FilenameAt(time.Unix(int64(n), 0))
		checks.Go(func() error { // one that ends its goroutine keeps no other one waiting
			h.check(t, s, at, name)
			return nil
		})
	}
	check.NoError(t, checks.Wait())
	t.Logf("%d moments in %s", targets, since(began))
}

// written has all databases written to, for so long.
func written(t *testing.T, s *agenttest.Stack, histories []*history, long time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var writers sync.WaitGroup
	for _, h := range histories {
		for w := range historyWriters {
			db := s.Owner(t, h.of)
			writers.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					one := write{number: n*historyWriters + w, sent: time.Now()}
					end := "COMMIT"
					if n%7 == 3 {
						end = "ROLLBACK"
					}
					if _, err := db.Exec("BEGIN; INSERT INTO history VALUES (" + strconv.Itoa(one.number) + "); " + end); err != nil {
						t.Error(err)
						return
					}
					if end == "COMMIT" {
						one.answered = time.Now()
					}
					h.mu.Lock()
					h.writes = append(h.writes, one)
					h.mu.Unlock()
					time.Sleep(time.Duration(n%5) * time.Millisecond)
				}
			})
		}
	}
	writers.Wait()
}

// moment is one at a random write, to the microsecond or to the second.
func (h *history) moment(random *rand.Rand) time.Time {
	w := h.writes[random.IntN(len(h.writes))]
	switch at := w.answered; {
	case at.IsZero() || random.IntN(3) == 0:
		return w.sent.Truncate(time.Microsecond)
	case random.IntN(2) == 0 && at.Truncate(time.Second).After(h.writes[0].sent):
		return at.Truncate(time.Second)
	default:
		return at.Truncate(time.Microsecond)
	}
}

// check has the database back as it was, and compares.
func (h *history) check(t *testing.T, s *agenttest.Stack, at time.Time, name backup.Filename) {
	t.Helper()
	report := s.BackedUp(t, h.of.Past(agenttest.NewUUID(), string(name), at))
	if report.State != command.BackupDone {
		t.Errorf("%s: %+v", at.Format(time.RFC3339Nano), report)
		return
	}
	has := h.numbers(t, s, name)
	for _, w := range h.writes {
		there := has[w.number]
		delete(has, w.number)
		switch {
		case there && w.answered.IsZero():
			t.Errorf("%s: %d was rolled back, and is there", at.Format(time.RFC3339Nano), w.number)
		case there && w.sent.After(at):
			t.Errorf("%s: %d was sent %s later, and is there", at.Format(time.RFC3339Nano), w.number, w.sent.Sub(at))
		case !there && !w.answered.IsZero() && !w.answered.After(at):
			t.Errorf("%s: %d was answered %s before, and is not there", at.Format(time.RFC3339Nano), w.number, at.Sub(w.answered))
		}
	}
	for n := range maps.Keys(has) {
		t.Errorf("%s: nobody has written %d", at.Format(time.RFC3339Nano), n)
	}
}

// numbers are those in the file of a moment.
func (h *history) numbers(t *testing.T, s *agenttest.Stack, name backup.Filename) map[int]bool {
	t.Helper()
	set := backupfiles.Set{
		Folder: filepath.Join(s.Config.BackupDir, "passing"), Database: h.of.DatabaseID(), Filename: name, Key: agenttest.BackupKey,
	}
	file := check.Must(zstd.NewReader(bytes.NewReader(check.Must(set.Read(backupfiles.Data))(t))))(t)
	defer file.Close()
	_, rows, found := strings.Cut(string(check.Must(io.ReadAll(file))(t)), "COPY public.history (number) FROM stdin;\n")
	if !found {
		t.Fatal("the file has no such table")
	}
	rows, _, _ = strings.Cut(rows, "\\.\n")
	has := map[int]bool{}
	for row := range strings.Lines(rows) {
		n := check.Must(strconv.Atoi(strings.TrimSpace(row)))(t)
		if has[n] {
			t.Errorf("%d is there twice", n)
		}
		has[n] = true
	}
	return has
}
