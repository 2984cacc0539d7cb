package httpapi

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// slotWorld is the API with the use cases behind it, a database with a backup, and an agent that opens no file before resume.
type slotWorld struct {
	*roleWorld
	path   string
	bob    string // the key of another account, which is a member
	resume func()
}

var filePattern = regexp.MustCompile(`[0-9]{8}_[0-9]{6}\.sql\.gz`)

func newSlotWorld(t *testing.T, change func(*controlplane.Config)) *slotWorld {
	t.Helper()
	w := &slotWorld{roleWorld: newRoleWorld(t, change)}
	_, w.bob = w.customer("bob@example.org", account.SelectedDatabases, w.database.ID)
	files := "/api/v1/databases/" + string(w.database.ID) + "/backups"
	w.ask(t, head("POST", files, w.key))
	for range 3 { // the steps of a backup
		if done, err := w.use.Work.RunNext(t.Context()); err != nil || !done {
			t.Fatalf("the backup did not run: %v", err)
		}
		w.clock.Advance(time.Second)
	}
	w.path = files + "/" + filePattern.FindString(w.ask(t, head("GET", files, w.key)).text)
	resumed := make(chan struct{})
	w.resume = func() { close(resumed) }
	w.server.OnCall(func(ctx context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == "OpenBackup" {
			select {
			case <-resumed:
			case <-ctx.Done():
			}
		}
		return f
	})
	return w
}

// begins sends a request for the file and waits until the agent has been asked for so many.
func (w *slotWorld) begins(key string, asked int) *line {
	w.t.Helper()
	l := w.dial(w.t)
	l.say(head("GET", w.path, key))
	check.Eventually(w.t, "the agent is not asked", func() bool { return w.server.Calls("OpenBackup") >= asked })
	return l
}

// turnedAway expects the refusal, which says when to come back.
func (w *slotWorld) turnedAway(key string, code fault.Code) {
	w.t.Helper()
	r := w.ask(w.t, head("GET", w.path, key))
	r.expect(w.t, code.Status(), code)
	if after, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || after < 1 || after > 60 {
		w.t.Errorf("Retry-After: %q", r.Header.Get("Retry-After"))
	}
}

func TestTheFifthDownloadOfAnAccountIsTurnedAway(t *testing.T) {
	w := newSlotWorld(t, func(*controlplane.Config) {})
	var open []*line
	for i := range 4 {
		open = append(open, w.begins(w.key, i+1))
	}
	w.turnedAway(w.key, fault.RateLimited)
	open = append(open, w.begins(w.bob, 5))
	w.resume()
	for _, l := range open {
		if r := l.hear(cutBy); r.StatusCode != 200 {
			t.Errorf("got %d %s", r.StatusCode, r.text)
		}
	}
	if r := w.ask(t, head("GET", w.path, w.key)); r.StatusCode != 200 {
		t.Errorf("when they are done: %d %s", r.StatusCode, r.text)
	}
}

func TestADownloadFromABusyServerIsTurnedAway(t *testing.T) {
	w := newSlotWorld(t, func(c *controlplane.Config) { c.DownloadsPerServer, c.DownloadWait = 1, 50*time.Millisecond })
	ada := w.begins(w.key, 1)
	w.turnedAway(w.bob, fault.ServerBusy)
	if n := w.logs.FilterMessage("request failed").Len(); n > 0 {
		t.Errorf("%d lines as of a failure", n)
	}
	w.resume()
	if r := ada.hear(cutBy); r.StatusCode != 200 {
		t.Errorf("got %d %s", r.StatusCode, r.text)
	}
	if r := w.ask(t, head("GET", w.path, w.bob)); r.StatusCode != 200 {
		t.Errorf("when it is done: %d %s", r.StatusCode, r.text)
	}
}

// Bob may have one download, the waiting one included. When its client leaves, he may ask again.
func TestAWaitingDownloadEndsWithItsClient(t *testing.T) {
	w := newSlotWorld(t, func(c *controlplane.Config) {
		c.DownloadsPerServer, c.DownloadsPerAccount, c.DownloadWait = 1, 1, time.Minute
	})
	ada := w.begins(w.key, 1)
	first := w.dial(t)
	first.say(head("GET", w.path, w.bob))
	_ = first.SetReadDeadline(time.Now().Add(2 * glance))
	if _, err := first.br.Peek(1); err == nil {
		t.Fatal("the first does not wait")
	}
	for until := time.Now().Add(cutBy); ; time.Sleep(10 * time.Millisecond) {
		again := w.dial(t)
		again.say(head("GET", w.path, w.bob))
		_ = again.SetReadDeadline(time.Now().Add(2 * glance))
		if _, err := again.br.Peek(1); err != nil { // it waits
			w.resume()
			if r := again.hear(cutBy); r.StatusCode != 200 {
				t.Errorf("got %d %s", r.StatusCode, r.text)
			}
			break
		}
		again.hear(cutBy).expect(t, 429, fault.RateLimited)
		_ = first.Close()
		if time.Now().After(until) {
			t.Fatal("the place of a client that left is not free")
		}
	}
	if r := ada.hear(cutBy); r.StatusCode != 200 {
		t.Errorf("got %d %s", r.StatusCode, r.text)
	}
	check.Eventually(t, "the log does not say that a client left", func() bool { // it does once the place is free
		for _, line := range w.logs.FilterMessage("request").All() {
			if line.ContextMap()["status"] == int64(statusClientLeft) {
				return true
			}
		}
		return false
	})
}
