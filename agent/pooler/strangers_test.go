package pooler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

const (
	// strangers is how many connections one run makes, crowdSize how many of them are sending at once. Those that stay until
	// PgBouncer ends them come on top: one in eight, far below max_client_conn.
	strangers, crowdSize = 2000, 16
	// longestVisit is client_login_timeout and what PgBouncer may take to notice that it is over.
	longestVisit = 20 * time.Second
	seedVariable = "PGHERD_STRANGERS_SEED"
)

// TestStrangersHurtNobody holds that whatever is sent before a log-in, nobody else notices: a customer's session and a
// customer's log-ins go on all the time, and PgBouncer is the same process afterwards, with what it held before. A failure names
// the seed; with it in PGHERD_STRANGERS_SEED the same packets are sent again.
func TestStrangersHurtNobody(t *testing.T) {
	s := realStack(t)
	seed := seedOf(t)
	c, b := newCrowd(t, s, seed), newBystander(t, s)
	t.Cleanup(func() { restartAfterFailure(t, s, seed) })
	before := resourcesOf(t, s)
	c.come(t)
	b.rest(t)
	if t.Failed() {
		return
	}
	select {
	case <-s.bouncer.Done():
		t.Fatal("PgBouncer has ended")
	default:
	}
	check.NoError(t, s.pooler.Ping(t.Context()))
	before.mustComeBack(t, s)
}

func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv(seedVariable)
	if text == "" {
		return rand.Uint64()
	}
	return check.Must(strconv.ParseUint(text, 10, 64))(t)
}

// restartAfterFailure keeps a PgBouncer that hangs from failing all tests after this one.
func restartAfterFailure(t *testing.T, s *stack, seed uint64) {
	if !t.Failed() {
		return
	}
	t.Logf("to send the same again: %s=%d", seedVariable, seed)
	check.NoError(t, s.bouncer.Kill())
	check.NoError(t, s.bouncer.Start(context.Background()))
}

// come sends all strangers. It ends early when the bystander is hurt.
func (c *crowd) come(t *testing.T) {
	var sending, staying sync.WaitGroup
	numbers := make(chan uint64)
	for range crowdSize {
		sending.Go(func() {
			for n := range numbers {
				if err := c.enter(n, &staying); err != nil && !t.Failed() {
					t.Errorf("stranger %d: %v", n, err)
				}
			}
		})
	}
	for n := range uint64(strangers) {
		if t.Failed() {
			break
		}
		numbers <- n
	}
	close(numbers)
	sending.Wait()
	staying.Wait()
}

// resources is what PgBouncer holds.
type resources struct{ files, kilobytes int }

func resourcesOf(t *testing.T, s *stack) (r resources) {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d/", s.bouncer.Pid())
	files := check.Must(os.ReadDir(folder + "fd"))(t)
	status := check.Must(os.ReadFile(folder + "status"))(t)
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	check.Must(fmt.Sscan(rest, &r.kilobytes))(t)
	r.files = len(files)
	return r
}

// mustComeBack allows for PgBouncer's own connections to PostgreSQL, and for 4 KiB for each stranger: PgBouncer keeps its buffers
// of the fullest moment, and before 1.26 leaks the names of _pq_ parameters, which is 2 MiB together. A connection inside TLS
// takes 25 KiB, so it is seen if a third of these stay in memory.
func (r resources) mustComeBack(t *testing.T, s *stack) {
	t.Helper()
	now := resourcesOf(t, s)
	for deadline := time.Now().Add(5 * time.Second); now.files > r.files+8 && time.Now().Before(deadline); now = resourcesOf(t, s) {
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("before %+v, after %+v", r, now)
	if now.files > r.files+8 || now.kilobytes > r.kilobytes+4*strangers {
		t.Errorf("PgBouncer held %+v, and %+v after %d strangers", r, now, strangers)
	}
}
