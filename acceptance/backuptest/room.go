package backuptest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/backup"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/store"
	core "github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// RoomFor is enough for a small database's dump and copy, and not for two copies: each has a margin of 64 MiB.
const RoomFor = 120 << 20

// Disk is a pretended disk, on which all folders are.
type Disk struct{ Free atomic.Int64 }

// At is a store's look at a folder.
func (d *Disk) At(string) (store.Disk, error) { return store.Disk{ID: 7, Free: d.Free.Load()}, nil }

// Cramped is a world whose agent has a pretended disk and looks often.
func (w *World) Cramped(free int64, change func(*Config)) *Disk {
	w.T.Helper()
	d := &Disk{}
	d.Free.Store(free)
	w.Files = w.Store(store.Options{Reserve: 1, Disk: d.At})
	config := w.Config()
	config.DataDir, config.LookPause = w.Root, 20*time.Millisecond
	change(&config)
	w.Agent = w.NewAgent(config)
	return d
}

// AsIs changes nothing.
func AsIs(*Config) {}

// Numbered is the request of one of several operations.
func (w *World) Numbered(n int) backup.Request {
	req := w.Request()
	req.OperationID = id.OperationID(fmt.Sprintf("22222222-2222-4222-8222-%012d", n))
	req.Filename = core.Filename(fmt.Sprintf("20260301_1200%02d.sql.gz", n))
	return req
}

// HoldFirst begins a backup that stands still once it has got its room, until the returned function is called.
func (w *World) HoldFirst(req backup.Request) (release func()) {
	held, reached := make(chan struct{}), make(chan struct{})
	var taken atomic.Bool
	w.Agent.Crash = func(point string) {
		if point == "backup.reserved" && taken.CompareAndSwap(false, true) {
			close(reached)
			<-held
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := w.Agent.Run(context.Background(), req, Unseen)
		ended <- err
	}()
	<-reached
	return func() {
		w.T.Helper()
		close(held)
		if err := <-ended; err != nil {
			w.T.Errorf("the first backup: %v", err)
		}
	}
}

// Stages collects the stages of a backup.
type Stages struct {
	mu   sync.Mutex
	list []string
}

// Add is told of progress.
func (s *Stages) Add(stage string, _ int, _ command.Bytes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 || s.list[len(s.list)-1] != stage {
		s.list = append(s.list, stage)
	}
}

// Seen are the stages so far, in their order.
func (s *Stages) Seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// Held is what the agent has promised for a purpose.
func (w *World) Held(purpose diskroom.Purpose) diskroom.Held {
	w.T.Helper()
	all := check.Must(w.Agent.Room.Held(w.T.Context()))(w.T)
	return all[slices.IndexFunc(all, func(h diskroom.Held) bool { return h.For == string(purpose) })]
}

// Reservations counts the admitted ones for dumps and copies.
func (w *World) Reservations() int {
	w.T.Helper()
	return w.Held(diskroom.Dump).Count + w.Held(diskroom.Copy).Count
}
